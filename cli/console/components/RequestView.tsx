import { Box } from 'ink'
import type { OtpRequest } from '../../client/resources.ts'
import { useConsole } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useNow } from '../hooks/use-now.ts'
import { useResource } from '../hooks/use-resource.ts'
import { usePhoneFormatter } from '../hooks/use-shell.ts'
import { requestLines } from '../lines/otp.ts'
import { summaryLines, timelineLines } from '../lines/timeline.ts'
import type { Line, Span } from '../spans.ts'
import { Lines } from './Lines.tsx'
import { LoadingOrError } from './LoadingOrError.tsx'
import { Rule } from './Rule.tsx'

type Props = { request: OtpRequest; width: number; height: number }

/** Phone, status and code, and a timeline of a few events. */
const factsMin = 3
const timelineMin = 7

/** Shows a request: its details, its code, and its timeline. */
export function RequestView({ request, code, width, height }: Props & { code: Span }) {
  const { theme } = useConsole()
  const formatPhone = usePhoneFormatter()
  const nowMs = useNow()
  const { applicationName } = useApplications()
  const facts = requestLines(request, code, { theme, nowMs, formatPhone, applicationName })
  // In a small terminal what happened is worth more than the last facts.
  const factLines = facts.slice(0, Math.max(factsMin, height - timelineMin))
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines lines={factLines} width={width} />
      <Timeline request={request} width={width} height={height - factLines.length} />
    </Box>
  )
}

/** Shorter than elsewhere: a support person is waiting for the next event of a pending code. */
const pendingPollMs = 1000
const closedPollMs = 5000

/** Timeline of a request, with a sentence that sums it up; live while the request is pending. */
export function Timeline({ request, width, height }: Props) {
  const { theme } = useConsole()
  const nowMs = useNow()
  const { id, status } = request
  const intervalMs = status === 'pending' ? pendingPollMs : closedPollMs
  const events = useResource('/v1/otp/:id/events', { params: { id } }, { intervalMs })
  const room = height - 1
  const summary = events.data === undefined ? [] : summaryLines(request, events.data, { nowMs, width, theme })
  const steps = timelineLines(events.data ?? [], theme)
  // The newest events are worth more than the first ones; the summary always stays.
  const shown: Line[] = [...summary, ...steps.slice(-Math.max(1, room - summary.length))]
  return (
    <Box flexDirection="column" width={width} height={height} flexShrink={0}>
      <Rule
        width={width}
        title="What happened"
        remark={status === 'pending' ? theme.status('waiting', 'live') : ''}
      />
      {events.data === undefined ? (
        <LoadingOrError polled={events} width={width} height={room} />
      ) : (
        <Lines lines={shown} width={width} height={room} />
      )}
    </Box>
  )
}
