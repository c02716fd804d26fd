import { Box } from 'ink'
import type { LogEntry } from '../../client/resources.ts'
import { entryDetail } from '../../client/log-lines.ts'
import { localTime } from '../../terminal/text.ts'
import { useConsole } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { usePhoneFormatter } from '../hooks/use-shell.ts'
import { factLines, type Fact } from '../lines/facts.ts'
import { typeSpan } from '../lines/log.ts'
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
  const applicationText = (id: string | null) =>
    id === null || applicationName(id) === id ? (id ?? '-') : `${applicationName(id)}  ${id}`
  const facts = (shown: LogEntry): Fact[] => [
    ['type', typeSpan(shown, theme)],
    ['time', `${localTime(shown.at)}  (${shown.at})`],
    ['application', applicationText(shown.appId)],
    ['request', shown.requestId ?? '-'],
    ['phone', formatPhone(shown.phone)],
    ['status', shown.status ?? '-'],
    ['detail', entryDetail(shown) || '-'],
    ['entry', shown.id],
  ]
  const lines = entry === null ? [' No entry selected.'] : factLines(facts(entry), theme, 13)
  return (
    <Box flexDirection="column" width={width} height={height} flexShrink={0}>
      <Rule width={width} title="Entry" />
      <Lines lines={lines} width={width} height={height - 1} />
    </Box>
  )
}
