"""Names that people can read out: twelve Crockford base32 characters, `7KQ2-M9XD-4T0B`."""

import secrets

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LOOKALIKES = str.maketrans({"I": "1", "L": "1", "O": "0", "-": None, " ": None})
_LENGTH = 12


def new_id() -> str:
    """A fresh random id (60 bits). A caller that inserts it copes with the rare one that is taken."""
    bits = secrets.randbits(5 * _LENGTH)
    return _grouped("".join(ALPHABET[bits >> (5 * place) & 31] for place in range(_LENGTH)))


def parse_id(text: str) -> str:
    """The id that a person meant: case, dashes, and I, L, O for 1, 1, 0 do not matter.

    Text that cannot be an id comes back as it is, so that looking it up says "unknown"."""
    bare = text.strip().upper().translate(_LOOKALIKES)
    if len(bare) != _LENGTH or any(letter not in ALPHABET for letter in bare):
        return text
    return _grouped(bare)


def _grouped(bare: str) -> str:
    return "-".join(bare[at : at + 4] for at in range(0, _LENGTH, 4))
