"""Reading the shop's files, and which returns are matched, against figures that are known otherwise."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from agents.errors import BadFile
from agents.examples import retail
from agents.examples.matching import Case, amount_of, match
from agents.examples.retail import COLUMNS, money
from agents.examples.seed import FILES
from tests.oracles import returns_oracle
from tests.oracles.mutate import mutate

RULE_LIMIT = Decimal("25.00")


def decide(folder: Path) -> tuple[Case, ...]:
    found = retail.returns_in(str(folder / "returns.csv"))
    wanted = frozenset(line.article for one in found for line in one.lines)
    return match(found, retail.purchases_in(str(folder / "orders.csv"), wanted))


def assert_agrees_with_the_oracle(folder: Path) -> None:
    expected = returns_oracle.verdicts(folder / "returns.csv", folder / "orders.csv")
    cases = decide(folder)
    assert {case.found.invoice: (case.matched, amount_of(case.found.lines)) for case in cases} == {
        invoice: (verdict.matched, verdict.amount) for invoice, verdict in expected.items()
    }


def test_the_real_files_give_the_four_figures(real_data: Path) -> None:
    cases = decide(real_data)
    amounts = {case.found.invoice: amount_of(case.found.lines) for case in cases}
    by_rule = [
        amounts[case.found.invoice] for case in cases if case.matched and amount_of(case.found.lines) <= RULE_LIMIT
    ]
    assert len(cases) == 384
    assert sum(case.matched for case in cases) == 147
    assert (len(by_rule), sum(by_rule)) == (83, Decimal("925.34"))
    assert sum(amounts.values()) == Decimal("114726.38")


def test_the_oracle_gives_the_four_figures_too(real_data: Path) -> None:
    totals = returns_oracle.totals(returns_oracle.verdicts(real_data / "returns.csv", real_data / "orders.csv"))
    assert totals == returns_oracle.Totals(384, 147, 83, "925.34", "114726.38")


def test_the_real_files_agree_with_the_oracle_invoice_by_invoice(real_data: Path) -> None:
    assert_agrees_with_the_oracle(real_data)


@pytest.mark.parametrize("seed", range(20))
def test_changed_copies_agree_with_the_oracle(real_data: Path, tmp_path: Path, seed: int) -> None:
    assert len(mutate(real_data, tmp_path, seed)) == 20
    assert_agrees_with_the_oracle(tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_copies_with_every_second_row_changed_agree_with_the_oracle(real_data: Path, tmp_path: Path, seed: int) -> None:
    mutate(real_data, tmp_path, seed, rows=800)
    assert_agrees_with_the_oracle(tmp_path)


def test_the_demo_files_cover_each_kind_of_case() -> None:
    assert_agrees_with_the_oracle(FILES)
    cases = decide(FILES)
    kinds = {misfit.partition(":")[0] for case in cases for misfit in case.misfits}
    assert kinds == {"no customer", "not goods", "no purchase found", "above 500.00"}
    assert {Decimal("25.00"), Decimal("64.00"), Decimal("824.00")} <= {
        amount_of(case.found.lines) for case in cases if case.matched
    }
    text = (FILES / "returns.csv").read_text(encoding="utf-8")
    assert all(mark in text for mark in ("\u200b", "\u202e", "<script>", "\U0001f308"))


# -- how the sentence is read ------------------------------------------------------------------

Files = Callable[..., Path]


def row(invoice: str, quantity: int, at: str, *, code: str = "90001", price: str = "2.00", customer: str = "7") -> str:
    return f"{invoice},{code},A THING,{quantity},2011-01-0{at}:00,{price},{customer},Ireland"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    def write(*, returns: list[str], orders: list[str]) -> Path:
        for name, rows in (("returns", returns), ("orders", orders)):
            (tmp_path / f"{name}.csv").write_text("\n".join([",".join(COLUMNS), *rows, ""]), encoding="utf-8")
        return tmp_path

    return write


def matched(folder: Path) -> dict[str, bool]:
    assert_agrees_with_the_oracle(folder)
    return {case.found.invoice: case.matched for case in decide(folder)}


def test_a_purchase_in_the_same_minute_is_not_earlier(files: Files) -> None:
    folder = files(returns=[row("C1", -1, "2 10:00")], orders=[row("1", 1, "2 10:00")])
    assert matched(folder) == {"C1": False}


def test_what_a_matched_return_took_is_gone_and_what_an_unmatched_one_asked_is_not(files: Files) -> None:
    folder = files(
        returns=[
            row("C1", -6, "2 10:00"),
            row("C2", -4, "2 11:00"),
            row("C3", -2, "2 12:00"),
            row("C4", -1, "2 13:00"),
        ],
        orders=[row("1", 5, "1 10:00")],
    )
    assert matched(folder) == {"C1": False, "C2": True, "C3": False, "C4": True}


def test_a_return_is_matched_with_all_its_lines_or_none(files: Files) -> None:
    folder = files(
        returns=[row("C1", -1, "2 10:00"), row("C1", -1, "2 10:00", code="90002"), row("C2", -1, "2 11:00")],
        orders=[row("1", 1, "1 10:00")],
    )
    assert matched(folder) == {"C1": False, "C2": True}


def test_lines_of_one_return_for_one_article_ask_for_their_sum(files: Files) -> None:
    twice = [row("C1", -1, "2 10:00"), row("C1", -1, "2 10:00")]
    assert matched(files(returns=twice, orders=[row("1", 1, "1 10:00")])) == {"C1": False}
    assert matched(files(returns=twice, orders=[row("1", 1, "1 10:00"), row("1", 1, "1 10:00")])) == {"C1": True}


def test_returns_of_one_minute_come_in_order_of_their_number(files: Files) -> None:
    folder = files(
        returns=[row("C2", -1, "2 10:00"), row("C1", -1, "2 10:00")],
        orders=[row("1", 1, "1 10:00")],
    )
    assert matched(folder) == {"C1": True, "C2": False}


def test_prices_are_compared_as_numbers_and_customers_without_the_point_zero(files: Files) -> None:
    folder = files(
        returns=[row("C1", -1, "2 10:00", price="2.1", customer="7.0")],
        orders=[row("1", 1, "1 10:00", price="2.10", customer="7")],
    )
    assert matched(folder) == {"C1": True}


def test_lines_without_a_customer_match_nothing(files: Files) -> None:
    folder = files(returns=[row("C1", -1, "2 10:00", customer="")], orders=[row("1", 1, "1 10:00", customer="")])
    assert matched(folder) == {"C1": False}
    assert decide(folder)[0].misfits == ("no customer",)


def test_what_does_not_fit_is_said_in_order(files: Files) -> None:
    folder = files(
        returns=[
            row("C1", -1, "2 10:00", code="AMAZONFEE", price="600.00", customer=""),
            row("C1", -3, "2 10:00"),
            row("C1", -1, "2 10:00", code="m", customer="8"),
        ],
        orders=[row("1", 2, "1 10:00")],
    )
    assert decide(folder)[0].misfits == (
        "no customer",
        "more than one customer: 7, 8",
        "not goods: AMAZONFEE (Amazon's fee)",
        "not goods: m (manual entry)",
        "no purchase found: 3 of 90001 at 2.00, only 2 bought earlier and not yet returned",
        "no purchase found: 1 of m at 2.00",
        "above 500.00",
    )


def test_amounts_are_never_rounded(files: Files) -> None:
    folder = files(
        returns=[row("C1", -3, "2 10:00", price="0.125"), row("C2", -8, "2 10:00", price="0.125")], orders=[]
    )
    first, second = decide(folder)
    assert str(amount_of(first.found.lines)) == "0.375"
    assert first.misfits[-1] == "not a whole number of cents"
    assert str(amount_of(second.found.lines)) == "1.00"
    assert [str(money(Decimal(text))) for text in ("3", "2.1", "2.100", "0.001")] == ["3.00", "2.10", "2.10", "0.001"]


# -- rows that cannot be read ------------------------------------------------------------------

GOOD = row("C1", -1, "2 10:00")
BAD_RETURNS = {
    "fields": ("C1,90001,A THING", "has 3 fields, not 8"),
    "positive": (row("C1", 1, "2 10:00"), "Quantity '1' is not negative: this is no return"),
    "zero": (row("C1", 0, "2 10:00"), "Quantity '0' is not negative: this is no return"),
    "fraction": (GOOD.replace(",-1,", ",-1.5,"), "Quantity '-1.5' is not a whole number"),
    "other digits": (GOOD.replace(",-1,", ",-\u0661,"), "Quantity '-\u0661' is not a whole number"),
    "not a number": (row("C1", -1, "2 10:00", price="NaN"), "UnitPrice 'NaN' is not a price"),
    "negative price": (row("C1", -1, "2 10:00", price="-2.00"), "UnitPrice '-2.00' is not a price"),
    "exponent": (row("C1", -1, "2 10:00", price="1e5"), "UnitPrice '1e5' is not a price"),
    "comma": (row("C1", -1, "2 10:00", price='"2,00"'), "UnitPrice '2,00' is not a price"),
    "day": (
        GOOD.replace("2011-01-02", "2011-02-30"),
        "InvoiceDate '2011-02-30 10:00:00' is not a time of the calendar",
    ),
    "time": (GOOD.replace("2011-01-02 10:00:00", "2/1/2011 10:00"), "InvoiceDate '2/1/2011 10:00' is not a time like"),
    "no number": (row("", -1, "2 10:00"), "InvoiceNo '' is not 1 to 40 printable ASCII characters"),
    "code": (row("C1", -1, "2 10:00", code="90\u200b001"), "StockCode '90\\u200b001' is not 1 to 40 printable"),
    "customer": (row("C1", -1, "2 10:00", customer=" 7"), "CustomerID ' 7' is not 1 to 40 printable"),
    "quote": (GOOD.replace("A THING", '"A" THING'), "is not CSV"),
}


@pytest.mark.parametrize(("bad", "problem"), BAD_RETURNS.values(), ids=BAD_RETURNS)
def test_a_bad_row_is_refused_with_file_line_and_reason(files: Files, bad: str, problem: str) -> None:
    folder = files(returns=[GOOD, bad, GOOD], orders=[])
    with pytest.raises(BadFile) as refusal:
        decide(folder)
    assert str(refusal.value).startswith(f"{folder / 'returns.csv'}, line 3: ")
    assert problem in str(refusal.value)


def test_a_bad_order_is_refused_even_if_no_return_is_about_it(files: Files) -> None:
    folder = files(returns=[GOOD], orders=[row("1", -1, "1 10:00", code="90002")])
    with pytest.raises(BadFile, match=r"orders\.csv, line 2: Quantity '-1' is not positive: this is no order"):
        decide(folder)


def test_the_line_named_is_the_first_of_a_row_that_runs_over_several(files: Files) -> None:
    long = GOOD.replace("A THING", '"A\nTHING\nOF THREE LINES"')
    with pytest.raises(BadFile, match="line 5: "):
        decide(files(returns=[long, "C1"], orders=[]))


def test_files_that_are_no_such_table_are_refused(tmp_path: Path) -> None:
    for content, problem in (
        (None, "cannot be read: No such file or directory"),
        (b"", "line 1: the columns must be InvoiceNo, "),
        (b"InvoiceNo,StockCode\n", "line 1: the columns must be InvoiceNo, "),
        (",".join(COLUMNS).encode() + b"\nC1,90001,\xff\n", "is not UTF-8"),
    ):
        path = tmp_path / "returns.csv"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(BadFile) as refusal:
            retail.returns_in(str(path))
        assert str(refusal.value).startswith(str(path))
        assert problem in str(refusal.value)


def test_a_byte_order_mark_and_empty_lines_are_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "returns.csv"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([",".join(COLUMNS), GOOD, "", ""]).encode())
    assert [found.invoice for found in retail.returns_in(str(path))] == ["C1"]
