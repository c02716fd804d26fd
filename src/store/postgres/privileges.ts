import type { ClientBase } from 'pg'
import { StartRefused } from '../data-dir/data-dir.ts'

/** Objects of otpd for which the role lacks privileges. A partition needs none: statements name its table. */
const lackingSql = `with objects as (
  select oid, relname as name, relkind as kind from pg_class
  where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'S') and not relispartition
    and relowner = (select relowner from pg_class where oid = 'migrations'::regclass)
), lacking as (
  select name, privilege from objects, unnest(array['select', 'insert', 'update', 'delete', 'usage']) as privilege
  where case
      when kind = 'S' and privilege = 'usage' then not has_sequence_privilege(oid, privilege)
      when kind <> 'S' and privilege <> 'usage' then not has_table_privilege(oid, privilege)
    end
    and not (name = 'audit_entries' and privilege in ('update', 'delete'))
    and not (name = 'migrations' and privilege <> 'select')
  union all
  select proname, 'execute' from pg_proc
  where pronamespace = current_schema()::regnamespace and prosecdef and proname like 'otpd\\_%'
    and not has_function_privilege(oid, 'execute')
)
select name, string_agg(privilege, ', ') as privileges from lacking group by name order by name`

const namedMax = 3

/**
 * Requires the privileges that a node needs: without one of them it would start, and fail each call that needs it.
 *
 * @throws StartRefused
 */
export async function requirePrivileges(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ name: string; privileges: string }>(lackingSql)
  if (rows.length === 0) return
  const named = rows.slice(0, namedMax).map(({ name, privileges }) => `${privileges} on ${name}`)
  const more = rows.length > namedMax ? [`${rows.length - namedMax} more`] : []
  throw new StartRefused(
    `the role of the database URL lacks privileges: ${[...named, ...more].join('; ')}`,
    'Grant them as the owner of the tables; all that a node needs: otpd docs many-nodes',
  )
}
