import { Box } from 'ink'
import type { InboxItem } from '../../client/resources.ts'
import { formatTimeUntil, recentTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { Lines } from '../components/Lines.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { Rule } from '../components/Rule.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { useConsole } from '../console-context.ts'
import { useApplications, useRowsShown } from '../hooks/use-applications.ts'
import { useInbox } from '../hooks/use-inbox.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePhoneFormatter } from '../hooks/use-shell.ts'
import type { Screen, ScreenProps } from '../screen.ts'
import { wrap, type Span } from '../spans.ts'

/** Screen with the messages that were kept here instead of sent, and their codes. */
export const inboxScreen: Screen = {
  title: 'Inbox',
  commands: ['otpd inbox', 'otpd inbox --limit 1 --json'],
  View: InboxView,
}

const empty = [
  'No messages in the last 24 hours.',
  'Codes appear here while no provider is configured. Codes of test applications always do.',
  '',
  'Send one:  otpd otp send +14155550132 --env-file .env.otpd',
]

function InboxView({ width, height, isCompact }: ScreenProps) {
  const { theme, copy, go } = useConsole()
  const { paint } = theme
  const { applicationName, applicationCell } = useApplications()
  const formatPhone = usePhoneFormatter()
  const nowMs = useNow()
  const inbox = useRowsShown(useInbox())
  const messageHeight = isCompact ? 2 : 4
  const list = useList({
    name: 'inbox',
    rows: inbox.data ?? [],
    height: height - 1 - messageHeight,
    getRowId: ({ id }) => id,
    getFilterText: ({ phone, appId, code, requestId }) =>
      [phone, applicationName(appId), code, requestId].join(' '),
  })
  const { code = null, requestId = null, text = null } = list.selected ?? {}
  useKeys('inbox', {
    copy: code === null ? undefined : () => copy(code, 'code'),
    open: requestId === null ? undefined : () => go('otp', { requestId }),
  })
  if (inbox.data === undefined) return <LoadingOrError polled={inbox} width={width} height={height} />

  const columns: Column<InboxItem>[] = [
    { title: 'SENT', width: 11, cell: ({ sentAt }) => recentTime(sentAt, nowMs) },
    { title: 'PHONE', width: 16, cell: ({ phone }) => formatPhone(phone) },
    { title: 'CODE', width: 8, cell: (item) => codeSpan(item, paint) },
    { title: 'EXPIRES', width: 15, cell: (item) => expiryText(item, nowMs) },
    { title: 'APP', width: 12, grow: 1, maxWidth: 32, dropPriority: 1, cell: applicationCell },
    { title: 'REQUEST', width: 30, dropPriority: 2, cell: (item) => item.requestId ?? '' },
  ]
  const expiredLines =
    list.selected === null
      ? []
      : [{ text: ' The code is no longer valid, and its message is no longer kept.', paint: paint.dim }]
  const [firstLine = '', ...moreLines] = text === null ? [] : wrap(text, width - 2)
  // On a small screen one line has all of it, so that its end is cut with an ellipsis.
  const textLines = isCompact ? [[firstLine, ...moreLines].join(' ')] : [firstLine, ...moreLines]
  const messageLines = text === null ? expiredLines : textLines.map((line) => ` ${line}`)
  return (
    <Box flexDirection="column" width={width} height={height}>
      <ListTable list={list} columns={columns} width={width} empty={empty} />
      <Rule width={width} title="Message" />
      <Lines lines={messageLines} width={width} height={messageHeight - 1} />
    </Box>
  )
}

const codeSpan = (
  { code }: InboxItem,
  { bold, dim }: Record<'bold' | 'dim', (text: string) => string>,
): Span => (code === null ? { text: '-', paint: dim } : { text: code, paint: bold })

const expiryText = ({ code, expiresAt }: InboxItem, nowMs: number) =>
  code === null ? 'no longer valid' : formatTimeUntil(expiresAt, nowMs)
