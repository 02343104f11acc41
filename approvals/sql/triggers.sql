-- What was said is only ever added to (journal_append_only comes with the journal's own triggers).
CREATE TRIGGER approvals_policyversion_append_only BEFORE UPDATE OR DELETE ON approvals_policyversion
FOR EACH ROW EXECUTE FUNCTION journal_append_only();

CREATE TRIGGER approvals_revision_append_only BEFORE UPDATE OR DELETE ON approvals_revision
FOR EACH ROW EXECUTE FUNCTION journal_append_only();

CREATE TRIGGER approvals_entry_append_only BEFORE UPDATE OR DELETE ON approvals_entry
FOR EACH ROW EXECUTE FUNCTION journal_append_only();


-- An approval's ends are ends, and an approval is used once. The one way back is an approved, unused one that
-- was not used in time: it waits again, as another revision.
CREATE FUNCTION approvals_only_forward() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status <> OLD.status AND OLD.status <> 'waiting' AND NOT (
        OLD.status = 'approved' AND NEW.status = 'waiting' AND OLD.used_at IS NULL AND NEW.revision > OLD.revision
    ) THEN
        RAISE EXCEPTION 'approval % is %: it cannot become %', OLD.id, OLD.status, NEW.status
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF (OLD.used_at IS NOT NULL AND NEW.used_at IS DISTINCT FROM OLD.used_at)
        OR NEW.count < OLD.count OR NEW.revision < OLD.revision
        OR (NEW.run_id, NEW.generation, NEW.branch, NEW.path, NEW.idempotency_key, NEW.action, NEW.policy_id)
            IS DISTINCT FROM
           (OLD.run_id, OLD.generation, OLD.branch, OLD.path, OLD.idempotency_key, OLD.action, OLD.policy_id)
    THEN
        RAISE EXCEPTION 'approval %: what it is for, and that it was used, cannot change', OLD.id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER approvals_approval_only_forward BEFORE UPDATE ON approvals_approval
FOR EACH ROW EXECUTE FUNCTION approvals_only_forward();

CREATE TRIGGER approvals_approval_kept BEFORE DELETE ON approvals_approval
FOR EACH ROW EXECUTE FUNCTION journal_append_only();
