import { Box } from 'ink'
import { readExpiry, readScopes } from '../../client/api-tokens.ts'
import type { ApiToken } from '../../client/resources.ts'
import { CliError } from '../../terminal/errors.ts'
import { recentTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { ListTable } from '../components/ListTable.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { Rule } from '../components/Rule.tsx'
import { required, useConsole, type Dialog, type DialogNeeds } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePolled } from '../hooks/use-polled.ts'
import { credentialsFromToken, type IssuedCredentialSet } from '../issued-credentials.ts'

type OnIssued = (issued: IssuedCredentialSet) => void
type Props = { width: number; height: number; onIssued: OnIssued }

/** Lists the API tokens, which only a login may see. */
export function ApiTokens({ width, height, onIssued }: Props) {
  const console = useConsole()
  const { api, openDialog } = console
  const nowMs = useNow()
  const tokens = usePolled(
    'tokens',
    async () => {
      try {
        return (await api.asDeveloper('GET', '/v1/tokens', { query: { limit: '200' } })).data
      } catch (error) {
        // A console that runs with an API token may not list them.
        if (error instanceof CliError && error.status === 403) return null
        throw error
      }
    },
    { intervalMs: 10_000 },
  )
  const list = useList<ApiToken>({
    name: 'tokens',
    rows: tokens.data ?? [],
    height: height - 2,
    getRowId: ({ id }) => id,
  })
  const { selected } = list
  useKeys('profile', {
    create: tokens.data ? () => openDialog(createDialog(console, onIssued)) : undefined,
    revoke: selected && (() => openDialog(revokeDialog(console, selected))),
  })
  const columns: Column<ApiToken>[] = [
    { title: 'NAME', width: 14, grow: 1, maxWidth: 40, cell: ({ name }) => name },
    { title: 'SCOPES', width: 8, grow: 1, maxWidth: 24, cell: ({ scopes }) => scopes.join(', ') },
    {
      title: 'EXPIRES',
      width: 11,
      cell: ({ expiresAt }) => (expiresAt === null ? 'never' : recentTime(expiresAt, nowMs)),
    },
    {
      title: 'LAST USED',
      width: 11,
      dropPriority: 1,
      cell: ({ lastUsedAt }) => (lastUsedAt === null ? 'never' : recentTime(lastUsedAt, nowMs)),
    },
    { title: 'TOKEN', width: 21, dropPriority: 2, cell: ({ preview }) => preview },
    { title: 'ID', width: 30, dropPriority: 3, cell: ({ id }) => id },
  ]
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Rule width={width} title="API tokens" />
      {tokens.data === undefined ? (
        <LoadingOrError polled={tokens} width={width} height={height - 1} />
      ) : (
        <ListTable
          list={list}
          columns={columns}
          width={width}
          empty={
            tokens.data === null
              ? ['Only a login shows API tokens: otpd login']
              : ['No API tokens. Create one with n.']
          }
        />
      )}
    </Box>
  )
}

const createDialog = ({ api, toast }: DialogNeeds, onIssued: OnIssued): Dialog => ({
  kind: 'form',
  title: 'New API token',
  lines: ['Scopes: otp:read, support, read or write, which includes all; several with commas.'],
  fields: [
    { name: 'name', label: 'name', check: required },
    { name: 'scope', label: 'scope', initial: 'read', check: required },
    { name: 'expires', label: 'expires (12h, 30d, never)', initial: '90d', check: required },
  ],
  verb: 'create',
  async submit({ name = '', scope = '', expires = '' }) {
    const expiresAt = readExpiry(expires, Date.now())
    const body = { name, scopes: readScopes(scope), expiresAt }
    const { data } = await api.asDeveloper('POST', '/v1/tokens', { body })
    toast('API token created', 'good')
    onIssued(credentialsFromToken(data))
  },
})

const revokeDialog = ({ api, toast }: DialogNeeds, { id, name }: ApiToken): Dialog => ({
  kind: 'confirm',
  title: 'Revoke API token',
  lines: [`Programs that use ${name} are refused at once.`],
  confirmText: name,
  verb: 'revoke',
  async submit() {
    await api.asDeveloper('DELETE', '/v1/tokens/:id', { params: { id } })
    toast(`API token ${name} revoked`, 'good')
  },
})
