import { Box } from 'ink'
import type { LogEntry } from '../../client/resources.ts'
import { entryDetail } from '../../client/log-lines.ts'
import { localTime } from '../../terminal/text.ts'
import { useConsole } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { usePhoneFormatter } from '../hooks/use-shell.ts'
import { typeSpan } from '../lines/log.ts'
import type { Line, Span } from '../spans.ts'
import { Lines } from './Lines.tsx'
import { Rule } from './Rule.tsx'

/** Height in lines, including the rule above. */
export const logDetailHeight = 9

/** Shows every field of a log entry. */
export function LogDetail({
  entry,
  width,
  height,
}: {
  entry: LogEntry | null
  width: number
  height: number
}) {
  const { theme } = useConsole()
  const { applicationName } = useApplications()
  const formatPhone = usePhoneFormatter()
  const fact = (label: string, value: Span | null): Line => [
    { text: ` ${label.padEnd(13)}`, paint: theme.paint.dim },
    value ?? '-',
  ]
  const applicationText = (id: string | null) =>
    id === null || applicationName(id) === id ? id : `${applicationName(id)}  ${id}`
  const lines: Line[] =
    entry === null
      ? [' No entry selected.']
      : [
          fact('type', typeSpan(entry, theme)),
          fact('time', `${localTime(entry.at)}  (${entry.at})`),
          fact('application', applicationText(entry.appId)),
          fact('request', entry.requestId),
          fact('phone', formatPhone(entry.phone)),
          fact('status', entry.status),
          fact('detail', entryDetail(entry) || null),
          fact('entry', entry.id),
        ]
  return (
    <Box flexDirection="column" width={width} height={height} flexShrink={0}>
      <Rule width={width} title="Entry" />
      <Lines lines={lines} width={width} height={height - 1} />
    </Box>
  )
}
