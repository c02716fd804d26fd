import { recentTime, remaining } from '../../text.ts'
import type { InboxItem } from '../../resources.ts'
import type { Column } from '../columns.ts'
import { ListTable } from '../components/ListTable.tsx'
import { Waiting } from '../components/Waiting.tsx'
import { useConsole } from '../console-context.ts'
import { useInbox } from '../hooks/use-inbox.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePhone } from '../hooks/use-shell.ts'
import type { Screen, ScreenProps } from '../screen.ts'

/** Codes that were kept here instead of sent. */
export const inboxScreen: Screen = {
  name: 'inbox',
  title: 'Inbox',
  commands: ['otpd inbox', 'otpd inbox --limit 1 --json'],
  View: InboxView,
}

const empty = ['No messages yet. Send a code:', '', '  otpd otp send PHONE --env-file FILE']

function InboxView({ width, height }: ScreenProps) {
  const { theme, copy } = useConsole()
  const { paint } = theme
  const phoneOf = usePhone()
  const nowMs = useNow()
  const inbox = useInbox()
  const list = useList({
    name: 'inbox',
    rows: inbox.data ?? [],
    height: height - 1,
    idOf: ({ id }) => id,
    textOf: ({ phone, requestId }) => `${phone} ${requestId ?? ''}`,
  })
  const { selected } = list
  const code = selected?.code ?? null
  useKeys('inbox', {
    copy: code === null ? undefined : () => copy(code, 'code'),
  })
  if (inbox.data === undefined) return <Waiting live={inbox} width={width} height={height} />

  const columns: Column<InboxItem>[] = [
    { title: 'SENT', width: 11, cell: ({ sentAt }) => recentTime(sentAt, nowMs) },
    { title: 'PHONE', width: 16, cell: ({ phone }) => phoneOf(phone) },
    {
      title: 'CODE',
      width: 8,
      cell: ({ code: one }) =>
        one === null ? { text: 'over', paint: paint.dim } : { text: one, paint: paint.bold },
    },
    {
      title: 'EXPIRES',
      width: 14,
      cell: ({ code: one, expiresAt }) =>
        one === null ? '' : `in ${remaining(Math.max(0, Date.parse(expiresAt) - nowMs))}`,
    },
    { title: 'REQUEST', width: 30, spare: 1, cell: ({ requestId }) => requestId ?? '' },
  ]
  return <ListTable list={list} columns={columns} width={width} empty={empty} />
}
