-- The clock of the engine: every statement reads the time through it. Tests replace this one function.
CREATE FUNCTION journal_clock() RETURNS timestamptz
LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

-- Half the updates of a run (its seq and head) touch no index: leave room to keep them on the page.
ALTER TABLE journal_run SET (fillfactor = 70);


-- Delivery of messages, at the COMMIT of the transaction that sent them (a deferred constraint trigger).
-- Counted earlier, the sender's open transaction would hold up the run's holder. Only a counter on the run's
-- own row is looked at again after a lock wait, so that is what a suspending holder compares.
CREATE FUNCTION journal_deliver() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM journal_message WHERE id = NEW.id AND arrived_at IS NULL;
    IF NOT FOUND THEN
        RETURN NULL;  -- the first firing in this transaction has delivered them all
    END IF;

    -- Undelivered messages of others are not visible here: these are all of this transaction's. Locked run by
    -- run in the order of ids: two senders to X,Y and Y,X would deadlock otherwise.
    PERFORM 1 FROM journal_run
    WHERE id IN (SELECT run_id FROM journal_message WHERE arrived_at IS NULL)
    ORDER BY id FOR NO KEY UPDATE;

    -- A new statement, so that it sees the runs as they are now that they are locked.
    WITH delivered AS (
        UPDATE journal_message m
        SET arrived_at = journal_clock(),
            fate = CASE WHEN r.ended_at IS NOT NULL THEN 'run_ended' ELSE m.fate END
        FROM journal_run r
        WHERE r.id = m.run_id AND m.arrived_at IS NULL
        RETURNING m.run_id, m.kind, m.name, m.generation, m.branch, m.path, m.fate
    ), counted AS (
        SELECT d.run_id, count(*) AS messages, bool_or(EXISTS (
            SELECT 1 FROM journal_wait w
            WHERE w.run_id = d.run_id
              AND CASE WHEN d.kind = 'signal' THEN w.kind = 'signal' AND w.name = d.name
                  ELSE w.generation = d.generation AND w.branch = d.branch AND w.path = d.path END
        )) AS wanted
        FROM delivered d WHERE d.fate IS NULL GROUP BY d.run_id
    )
    UPDATE journal_run r
    SET inbox_count = r.inbox_count + c.messages,
        status = CASE WHEN r.status = 'waiting' AND c.wanted THEN 'ready' ELSE r.status END,
        state_at = CASE WHEN r.status = 'waiting' AND c.wanted THEN journal_clock() ELSE r.state_at END,
        claim_at = CASE WHEN r.status = 'waiting' AND c.wanted
                   THEN journal_claim_at(r.priority, true) ELSE r.claim_at END
    FROM counted c WHERE r.id = c.run_id;
    RETURN NULL;
END $$;

-- A run's place in the queue: by age, with a head start of an hour for one that was woken over one that is
-- new, and of ten minutes for each point of priority. So resumes come before starts, and nobody waits for ever.
CREATE FUNCTION journal_claim_at(priority smallint, woken boolean) RETURNS timestamptz
LANGUAGE sql VOLATILE AS $$
    SELECT journal_clock() - priority * interval '10 minutes'
         - CASE WHEN woken THEN interval '1 hour' ELSE interval '0' END
$$;

CREATE CONSTRAINT TRIGGER journal_message_deliver
AFTER INSERT ON journal_message DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION journal_deliver();


-- History is only ever added to.
CREATE FUNCTION journal_append_only() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER journal_event_append_only BEFORE UPDATE OR DELETE ON journal_event
FOR EACH ROW EXECUTE FUNCTION journal_append_only();

CREATE TRIGGER journal_payload_append_only BEFORE UPDATE OR DELETE ON journal_payload
FOR EACH ROW EXECUTE FUNCTION journal_append_only();
