import { Box } from 'ink'
import type { ApiToken, DeveloperProfile } from '../../client/resources.ts'
import { CliError } from '../../terminal/errors.ts'
import { recentTime, relativeTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { Lines } from '../components/Lines.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { Rule } from '../components/Rule.tsx'
import { useConsole, type Console, type Dialog } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePolled } from '../hooks/use-polled.ts'
import { useProjects } from '../hooks/use-projects.ts'
import { amountText } from '../lines/application.ts'
import { factLines } from '../lines/facts.ts'
import type { Screen, ScreenProps } from '../screen.ts'

/** Screen with the developer's own profile, plan and API tokens. */
export const profileScreen: Screen = {
  title: 'Profile',
  commands: [
    'otpd profile get',
    'otpd profile update --name NAME',
    'otpd profile password',
    'otpd token list',
    'otpd token revoke TOKEN',
  ],
  View: ProfileView,
}

function ProfileView({ width, height }: ScreenProps) {
  const console = useConsole()
  const { api, theme, openDialog, copy } = console
  const nowMs = useNow()
  const { data: applications = [] } = useApplications()
  const { data: projects = [] } = useProjects()
  const profile = usePolled('profile', async () => (await api.asDeveloper('GET', '/v1/developer/me')).data, {
    intervalMs: 10_000,
  })
  const { data } = profile
  useKeys('profile', {
    edit: data === undefined ? undefined : () => openDialog(editDialog(console, data)),
    copy: data === undefined ? undefined : () => copy(data.id, 'developer id'),
  })
  if (data === undefined) return <LoadingOrError polled={profile} width={width} height={height} />
  const { limits } = data
  const none = { text: 'none', paint: theme.paint.dim }
  const you = factLines(
    [
      ['name', data.name ?? none],
      ['email', data.email ?? none],
      ['company', data.company ?? none],
      ['virtual phone', data.virtualPhoneNumber],
      ['created', relativeTime(data.createdAt, nowMs)],
      ['id', data.id],
    ],
    theme,
  )
  const plan = factLines(
    [
      ['plan', { text: data.plan, paint: theme.paint.bold }],
      ['projects', amountText(projects.length, limits.projects)],
      ['applications', amountText(applications.length, limits.applications)],
      ['sends', `${rateText(limits.sendPerMinute)}, each application`],
      ['verifications', `${rateText(limits.verifyPerMinute)}, each application`],
      ['look-ups', `${rateText(limits.lookupsPerMinute)}, each API key`],
      ['console calls', rateText(limits.consolePerMinute)],
    ],
    theme,
  )
  const isWide = width >= 100
  const half = isWide ? Math.floor(width / 2) : width
  const top = Math.max(you.length, plan.length) + 1
  const topHeight = isWide ? top : you.length + plan.length + 2
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Box
        flexDirection={isWide ? 'row' : 'column'}
        height={Math.min(topHeight, height)}
        flexShrink={0}
        overflow="hidden"
      >
        <Lines lines={[...you, '']} width={half} height={isWide ? top : you.length + 1} />
        <Lines
          lines={[...plan, '']}
          width={width - (isWide ? half : 0)}
          height={isWide ? top : plan.length + 1}
        />
      </Box>
      {height - topHeight >= 4 && <Tokens width={width} height={height - topHeight} />}
    </Box>
  )
}

const rateText = (perMinute: number) => (perMinute === 0 ? 'not limited' : `${perMinute} a minute`)

/** Lists the API tokens, which only a login may see. */
function Tokens({ width, height }: { width: number; height: number }) {
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
    revoke: selected === null ? undefined : () => openDialog(revokeDialog(console, selected)),
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
              : ['No API tokens. Create one: otpd token create NAME --scope read']
          }
        />
      )}
    </Box>
  )
}

const revokeDialog = ({ api, toast }: Pick<Console, 'api' | 'toast'>, { id, name }: ApiToken): Dialog => ({
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

const editDialog = (
  { api, toast }: Pick<Console, 'api' | 'toast'>,
  { name, company }: DeveloperProfile,
): Dialog => ({
  kind: 'form',
  title: 'Edit profile',
  fields: [
    { name: 'name', label: 'name', initial: name ?? '' },
    { name: 'company', label: 'company', initial: company ?? '' },
  ],
  verb: 'save',
  async submit({ name: typedName = '', company: typedCompany = '' }) {
    const body = {
      ...(typedName.trim() !== '' && { name: typedName.trim() }),
      company: typedCompany.trim() || null,
    }
    await api.asDeveloper('PATCH', '/v1/developer/me', { body })
    toast('profile saved', 'good')
  },
})
