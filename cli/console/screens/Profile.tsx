import { Box } from 'ink'
import { useState } from 'react'
import type { DeveloperProfile } from '../../client/resources.ts'
import { relativeTime } from '../../terminal/text.ts'
import { Lines } from '../components/Lines.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { useConsole, type Dialog, type DialogNeeds } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useNow } from '../hooks/use-now.ts'
import { useResource } from '../hooks/use-resource.ts'
import { useProjects } from '../hooks/use-projects.ts'
import { amountText } from '../lines/application.ts'
import { factLines } from '../lines/facts.ts'
import type { IssuedCredentialSet } from '../issued-credentials.ts'
import type { Screen, ScreenProps } from '../screen.ts'
import { ApiTokens } from './ApiTokens.tsx'
import { IssuedCredentials } from './IssuedCredentials.tsx'

/** Screen with the developer's own profile, plan and API tokens. */
export const profileScreen: Screen = {
  title: 'Profile',
  commands: [
    'otpd profile get',
    'otpd profile update --name NAME',
    'otpd profile password',
    'otpd token list',
    'otpd token create NAME',
    'otpd token revoke TOKEN',
  ],
  View: ProfileView,
}

function ProfileView(props: ScreenProps) {
  const [issued, setIssued] = useState<IssuedCredentialSet | null>(null)
  if (issued !== null) return <IssuedCredentials {...props} issued={issued} close={() => setIssued(null)} />
  return <ProfileAndTokens {...props} onIssued={setIssued} />
}

type Props = ScreenProps & { onIssued(issued: IssuedCredentialSet): void }

function ProfileAndTokens({ width, height, onIssued }: Props) {
  const console = useConsole()
  const { theme, openDialog, copy } = console
  const nowMs = useNow()
  const { data: applications = [] } = useApplications()
  const { data: projects = [] } = useProjects()
  const profile = useResource('/v1/developer/me', {}, { intervalMs: 10_000 })
  const { data } = profile
  useKeys('profile', {
    edit: data && (() => openDialog(editDialog(console, data))),
    copy: data && (() => copy(data.id, 'developer id')),
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
      {height - topHeight >= 4 && <ApiTokens width={width} height={height - topHeight} onIssued={onIssued} />}
    </Box>
  )
}

const rateText = (perMinute: number) => (perMinute === 0 ? 'not limited' : `${perMinute} a minute`)

const editDialog = ({ api, toast }: DialogNeeds, { name, company }: DeveloperProfile): Dialog => ({
  kind: 'form',
  title: 'Edit profile',
  fields: [
    { name: 'name', label: 'name', initial: name ?? '' },
    { name: 'company', label: 'company', initial: company ?? '' },
  ],
  verb: 'save',
  async submit({ name: typedName = '', company: typedCompany = '' }) {
    const body = { ...(typedName !== '' && { name: typedName }), company: typedCompany || null }
    await api.asDeveloper('PATCH', '/v1/developer/me', { body })
    toast('profile saved', 'good')
  },
})
