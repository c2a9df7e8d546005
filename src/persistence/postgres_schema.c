/* postgres_schema.c - the tables of a journal in PostgreSQL, and the statements that use them.
 *
 * Why.   One change of state is one call of one procedure, for a whole batch: the server begins
 *        when it has all of it, so a node that stands still in the middle of sending holds nothing.
 * Shape. event(id, number, position): position is the offset; tag: (tag, position); id: highest
 *        number; scope: epoch; snapshot. Names are bytes, and sorted as bytes.
 * Must hold.
 *   postgres-schema-S1  Changes take turns, by an advisory lock of the transaction: what the
 *       procedure compares is what is committed, and positions grow in the order of commits. A
 *       reader that has seen one position has seen all below it.
 *   postgres-schema-S2  The procedure commits by itself, before it answers: the lock never waits
 *       for the client.
 *   postgres-schema-S3  A refused change writes nothing and raises nothing.
 *   postgres-schema-S4  Events of the batch are inserted behind all its other changes; the driver
 *       never puts a deletion or a restored backup behind an append of the same id.
 *   postgres-schema-S5  A read ends with the first row beyond its limits, which comes without data.
 *   postgres-schema-S6  A slice deletes the first events of each of its ids: a deletion that ends
 *       between two slices leaves what one up to a lower number leaves. It needs no turn, since
 *       nothing is written below the highest number of an id.
 * Tests. tests/system/postgres.sh: the conformance kit, and what a killed server leaves.
 */
#include "persistence/postgres_schema.h"

#include <string.h>

#include "base/alloc.h"

const char trpi_postgres_tables[] =
    "CREATE SCHEMA IF NOT EXISTS @;"
    "CREATE TABLE @.format (version integer NOT NULL, made timestamptz NOT NULL DEFAULT now());"
    "INSERT INTO @.format (version) VALUES (1);"
    "CREATE SEQUENCE @.positions;"
    "CREATE TABLE @.scope (scope bytea PRIMARY KEY, epoch bigint NOT NULL, writer bytea NOT NULL)"
    " WITH (fillfactor = 50);"
    "CREATE TABLE @.id (id bytea PRIMARY KEY, highest bigint NOT NULL) WITH (fillfactor = 50);"
    "CREATE TABLE @.event (id bytea NOT NULL, number bigint NOT NULL, position bigint NOT NULL,"
    " time_ms bigint NOT NULL, version integer NOT NULL, type bytea NOT NULL, tags bytea NOT NULL,"
    " data bytea NOT NULL, PRIMARY KEY (id, number));"
    "CREATE UNIQUE INDEX event_position ON @.event (position);"
    "CREATE TABLE @.tag (tag bytea NOT NULL, position bigint NOT NULL,"
    " PRIMARY KEY (tag, position));"
    "CREATE TABLE @.snapshot (id bytea NOT NULL, number bigint NOT NULL, time_ms bigint NOT NULL,"
    " version integer NOT NULL, type bytea NOT NULL, data bytea NOT NULL,"
    " PRIMARY KEY (id, number));"
    /* Tags of an event are one text: the length of each in a byte, then the tag. */
    "CREATE FUNCTION @.forget(of_id bytea, up_to bigint) RETURNS void LANGUAGE plpgsql AS $$\n"
    "DECLARE gone record; at integer; bytes integer;\n"
    "BEGIN\n"
    "  FOR gone IN DELETE FROM @.event e WHERE e.id = of_id AND (up_to = 0 OR e.number <= up_to)\n"
    "    RETURNING e.position, e.tags LOOP\n"
    "    at := 0;\n"
    "    WHILE at < length(gone.tags) LOOP\n"
    "      bytes := get_byte(gone.tags, at);\n"
    "      DELETE FROM @.tag t WHERE t.tag = substring(gone.tags FROM at + 2 FOR bytes)\n"
    "        AND t.position = gone.position;\n"
    "      at := at + bytes + 1;\n"
    "    END LOOP;\n"
    "  END LOOP;\n"
    "END $$;"
    "CREATE PROCEDURE @.change(kinds smallint[], scopes bytea[], epochs bigint[], ids bytea[],"
    " numbers bigint[], counts integer[], firsts integer[], event_ops integer[], times bigint[],"
    " types bytea[], versions integer[], tag_lists bytea[], datas bytea[], tags bytea[],"
    " tag_events integer[], INOUT codes smallint[], INOUT highest_ones bigint[],"
    " INOUT epoch_ones bigint[], INOUT writers bytea[], INOUT first bigint)"
    " LANGUAGE plpgsql AS $$\n"
    "DECLARE\n"
    "  n CONSTANT integer := cardinality(kinds);\n"
    "  m CONSTANT integer := cardinality(event_ops);\n"
    "  known bytea; its_epoch bigint; its_writer bytea; top bigint; f integer; stored boolean[];\n"
    "BEGIN\n"
    "  PERFORM pg_advisory_xact_lock(1953656688::bigint << 32\n"
    "    | '@.positions'::regclass::oid::bigint);\n"
    "  codes := array_fill(0::smallint, ARRAY[n]);\n"
    "  highest_ones := array_fill(0::bigint, ARRAY[n]);\n"
    "  epoch_ones := array_fill(0::bigint, ARRAY[n]);\n"
    "  writers := array_fill(''::bytea, ARRAY[n]);\n"
    "  stored := array_fill(false, ARRAY[n]);\n"
    "  first := 0;\n"
    "  FOR i IN 1 .. n LOOP\n"
    "    IF kinds[i] = 1 THEN\n" /* epochs: of a restored one, else 0 */
    "      INSERT INTO @.scope AS s VALUES (scopes[i], greatest(epochs[i], 1), ids[i])\n"
    "        ON CONFLICT (scope) DO UPDATE SET epoch = greatest(s.epoch + 1, epochs[i]),\n"
    "          writer = excluded.writer RETURNING s.epoch INTO its_epoch;\n"
    "      epoch_ones[i] := its_epoch;\n"
    "      known := NULL;\n"
    "      CONTINUE;\n"
    "    END IF;\n"
    "    IF known IS DISTINCT FROM scopes[i] THEN\n"
    "      SELECT s.epoch, s.writer INTO its_epoch, its_writer FROM @.scope s\n"
    "        WHERE s.scope = scopes[i];\n"
    "      IF NOT FOUND THEN its_epoch := 0; its_writer := ''; END IF;\n"
    "      known := scopes[i];\n"
    "    END IF;\n"
    "    IF its_epoch <> epochs[i] OR its_epoch = 0 THEN\n"
    "      codes[i] := 1;\n"
    "      epoch_ones[i] := its_epoch;\n"
    "      writers[i] := its_writer;\n"
    "    ELSIF kinds[i] = 2 THEN\n"
    "      UPDATE @.id d SET highest = numbers[i] + counts[i] - 1\n"
    "        WHERE d.id = ids[i] AND d.highest = numbers[i] - 1;\n"
    "      IF FOUND THEN stored[i] := true; CONTINUE; END IF;\n"
    "      SELECT d.highest INTO top FROM @.id d WHERE d.id = ids[i];\n"
    "      IF NOT FOUND AND numbers[i] = 1 THEN\n"
    "        INSERT INTO @.id VALUES (ids[i], counts[i]);\n"
    "        stored[i] := true;\n"
    "      ELSE\n"
    "        codes[i] := 2;\n"
    "        highest_ones[i] := coalesce(top, 0);\n"
    "      END IF;\n"
    "    ELSIF kinds[i] = 12 THEN\n"
    "      SELECT d.highest INTO top FROM @.id d WHERE d.id = ids[i];\n"
    "      IF coalesce(top, 0) >= numbers[i]\n"
    "        OR EXISTS (SELECT FROM @.event e WHERE e.id = ids[i]) THEN\n"
    "        codes[i] := 2;\n"
    "        highest_ones[i] := coalesce(top, 0);\n"
    "      ELSE\n"
    "        INSERT INTO @.id AS d VALUES (ids[i], numbers[i] + counts[i] - 1)\n"
    "          ON CONFLICT (id) DO UPDATE SET highest = excluded.highest;\n"
    "        stored[i] := true;\n"
    "      END IF;\n"
    "    ELSIF kinds[i] = 5 THEN\n"
    "      PERFORM @.forget(ids[i], numbers[i]);\n"
    "      SELECT d.highest INTO top FROM @.id d WHERE d.id = ids[i];\n"
    "      highest_ones[i] := coalesce(top, 0);\n"
    "    ELSIF kinds[i] = 6 THEN\n"
    "      f := firsts[i];\n"
    "      INSERT INTO @.id VALUES (ids[i], 0) ON CONFLICT DO NOTHING;\n"
    "      INSERT INTO @.snapshot AS s (id, number, time_ms, version, type, data)\n"
    "        VALUES (ids[i], numbers[i], times[f], versions[f], types[f], datas[f])\n"
    "        ON CONFLICT (id, number) DO UPDATE SET time_ms = excluded.time_ms,\n"
    "          version = excluded.version, type = excluded.type, data = excluded.data;\n"
    "    ELSIF kinds[i] = 8 THEN\n"
    "      DELETE FROM @.snapshot s WHERE s.id = ids[i]\n"
    "        AND (numbers[i] = 0 OR s.number <= numbers[i])\n"
    "        AND s.number NOT IN (SELECT k.number FROM @.snapshot k WHERE k.id = ids[i]\n"
    "          ORDER BY k.number DESC LIMIT counts[i]);\n"
    "      GET DIAGNOSTICS top = ROW_COUNT;\n"
    "      highest_ones[i] := top;\n"
    "    END IF;\n"
    "  END LOOP;\n"
    "  IF true = ANY (stored) AND m > 0 THEN\n"
    "    first := nextval('@.positions');\n"
    "    IF m > 1 THEN PERFORM setval('@.positions', first + m - 1); END IF;\n"
    "    INSERT INTO @.event (id, number, position, time_ms, version, type, tags, data)\n"
    "      SELECT ids[e.op], numbers[e.op] + e.place - firsts[e.op], first + e.place - 1,\n"
    "        e.time_ms, e.version, e.type, e.tags, e.data\n"
    "      FROM unnest(event_ops, times, versions, types, tag_lists, datas) WITH ORDINALITY\n"
    "        AS e(op, time_ms, version, type, tags, data, place)\n"
    "      WHERE stored[e.op];\n"
    "    IF cardinality(tag_events) > 0 THEN\n"
    "      INSERT INTO @.tag (tag, position)\n"
    "        SELECT t.tag, first + t.place - 1 FROM unnest(tags, tag_events) AS t(tag, place)\n"
    "        WHERE stored[event_ops[t.place]];\n"
    "    END IF;\n"
    "  END IF;\n"
    "  COMMIT;\n"
    "END $$;";

/* Settings that the statements rely on: durable commits, a new view for
 * each statement, and plans that walk indexes. */
const char *const trpi_postgres_settings =
    "SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')"
    " WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false),"
    " set_config('default_transaction_isolation', 'read committed', false),"
    " set_config('lock_timeout', $1, false), set_config('statement_timeout', '0', false),"
    " set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', false),"
    " set_config('enable_mergejoin', 'off', false), set_config('enable_bitmapscan', 'off', false),"
    " set_config('jit', 'off', false), set_config('plan_cache_mode', 'force_generic_plan', false)";

/* $1: a number of this journal alone. The connection of changes has the lock of this number as long
 * as its session lives: end the session that still has it, and wait until it is over. */
const char *const trpi_postgres_fence_end =
    "SELECT pg_terminate_backend(l.pid) FROM pg_locks l WHERE l.locktype = 'advisory'"
    " AND l.objsubid = 1 AND l.granted AND l.pid <> pg_backend_pid() AND l.database ="
    " (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())"
    " AND l.classid::bigint = $1::bigint >> 32 AND l.objid::bigint = $1::bigint & 4294967295";
const char *const trpi_postgres_fence_take = "SELECT pg_advisory_lock($1::bigint)";

const char *const trpi_postgres_version =
    "SELECT f.version, (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint"
    " FROM pg_class c WHERE c.relnamespace = '@'::regnamespace AND c.relkind = 'r')"
    " FROM @.format f";

/* The rows of a read, with the data that stands before each: `b`. postgres-schema-S5. */
#define WITHIN(source, order)                                                                      \
    "(SELECT w.*, CASE WHEN w.b < $2 THEN w.data END AS given FROM (SELECT r.*,"                   \
    " sum(octet_length(r.data)) OVER (ORDER BY r." order " ROWS UNBOUNDED PRECEDING)"              \
    " - octet_length(r.data) AS b, lag(octet_length(r.data), 1, 0) OVER (ORDER BY r." order        \
    ") AS l FROM (" source ") r) w WHERE w.b < $2 OR w.b - w.l < $2)"
#define EVENT "e.id, e.number, e.position, e.time_ms, e.version, e.type, e.tags, e.data"
#define ROW_OF_EVENT "x.id, x.number, x.position, x.time_ms, x.version, x.type, x.tags, x.given"

/* $1: how many rows, $2: how many bytes of data. The binary form of each column is what
 * postgres_answer.c reads. */
const char *const trpi_postgres_statements[TRPI_POSTGRES_STATEMENTS] = {
    [TRPI_POSTGRES_CHANGE] = "CALL @.change($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,"
                             " $13, $14, $15, NULL, NULL, NULL, NULL, NULL)",
    [TRPI_POSTGRES_EVENTS] =
        "SELECT h.highest, " ROW_OF_EVENT " FROM (SELECT coalesce((SELECT d.highest FROM @.id d"
        " WHERE d.id = $3), 0) AS highest) h LEFT JOIN LATERAL " WITHIN(
            "SELECT " EVENT " FROM @.event e WHERE e.id = $3 AND e.number >= $4 AND e.number <= $5"
            " ORDER BY e.number LIMIT $1",
            "number") " x ON true ORDER BY x.number",
    [TRPI_POSTGRES_TAGGED] = "SELECT 0::bigint, " ROW_OF_EVENT " FROM " WITHIN(
        "SELECT " EVENT " FROM @.tag t JOIN @.event e ON e.position = t.position"
        " WHERE t.tag = $3 AND t.position > $4 ORDER BY t.position LIMIT $1",
        "position") " x ORDER BY x.position",
    [TRPI_POSTGRES_ALL] = "SELECT 0::bigint, " ROW_OF_EVENT " FROM " WITHIN(
        "SELECT " EVENT " FROM @.event e WHERE e.position > $3 ORDER BY e.position LIMIT $1",
        "position") " x ORDER BY x.position",
    [TRPI_POSTGRES_SNAPSHOT] =
        "SELECT h.highest, s.id, s.number, 0::bigint, s.time_ms, s.version, s.type, ''::bytea,"
        " s.data FROM (SELECT coalesce((SELECT d.highest FROM @.id d WHERE d.id = $1), 0)"
        " AS highest) h LEFT JOIN LATERAL (SELECT * FROM @.snapshot k WHERE k.id = $1"
        " AND k.number <= $2 ORDER BY k.number DESC LIMIT 1) s ON true",
    [TRPI_POSTGRES_IDS] =
        "SELECT 0::bigint, d.id, d.highest, 0::bigint, 0::bigint, 0::integer, ''::bytea, ''::bytea,"
        " ''::bytea FROM @.id d WHERE d.id > $2 AND (d.highest > 0 OR EXISTS (SELECT FROM"
        " @.snapshot s WHERE s.id = d.id)) ORDER BY d.id LIMIT $1",
    [TRPI_POSTGRES_SCOPES] =
        "SELECT 0::bigint, s.scope, s.epoch, 0::bigint, 0::bigint, 0::integer, s.writer, ''::bytea,"
        " ''::bytea FROM @.scope s WHERE s.scope > $2 ORDER BY s.scope LIMIT $1",
    /* $1: ids, $2: up to which number, $3: how many events of each, $4: how many bytes. The row of
     * an id has its place and the last number that is deleted; there is none without events. */
    [TRPI_POSTGRES_SLICE] =
        "SELECT d.place, s.number, @.forget(d.id, s.number) FROM unnest($1::bytea[], $2::bigint[])"
        " WITH ORDINALITY AS d(id, upto, place), LATERAL (SELECT max(w.number) AS number FROM"
        " (SELECT r.number, sum(octet_length(r.data)) OVER (ORDER BY r.number ROWS UNBOUNDED"
        " PRECEDING) - octet_length(r.data) AS b FROM (SELECT e.number, e.data FROM @.event e"
        " WHERE e.id = d.id AND e.number <= d.upto ORDER BY e.number LIMIT $3) r) w"
        " WHERE w.b < $4) s WHERE s.number IS NOT NULL",
};

char *
trpi_postgres_text(const char *text, const char *schema)
{
    size_t bytes = strlen(text) + 1;
    size_t name = strlen(schema);
    char *made = NULL;
    char *end = NULL;

    for (const char *at = text; *at != '\0'; at++) {
        bytes += *at == '@' ? name : 0;
    }
    made = trpi_alloc(bytes);
    for (end = made; made != NULL && *text != '\0'; text++) {
        if (*text == '@') {
            memcpy(end, schema, name);
            end += name;
        } else {
            *end++ = *text;
        }
    }
    return made;
}
