import { Box } from 'ink'
import type { ProviderState } from '../../client/resources.ts'
import { channelName, reasonWords } from '../../client/log-lines.ts'
import { shellWord } from '../../../src/shared/shell-word.ts'
import { recentTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { Lines } from '../components/Lines.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { Rule } from '../components/Rule.tsx'
import { useConsole } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { useBreadcrumbs } from '../hooks/use-shell.ts'
import { circuitSpan } from '../lines/breakdown.ts'
import { factLines, type Fact } from '../lines/facts.ts'

type Props = { provider: ProviderState; width: number; height: number; close(): void }
type Refusal = NonNullable<ProviderState['recentRefusals']>[number]

/** Page of a provider: its state, the command that tests it, and the newest messages that it did not accept. */
export function ProviderDetail({ provider, width, height, close }: Props) {
  const { theme, copy, go } = useConsole()
  const nowMs = useNow()
  const { name, title, kind, channels, failure, recentRefusals = [] } = provider
  const command = `otpd provider test ${shellWord(name)} PHONE`
  const facts: Fact[] = [
    ['state', [circuitSpan(provider, theme, nowMs), failure === null ? '' : `  ${reasonWords(failure)}`]],
    ['kind', `${title}  ${kind}`],
    ['channels', channels.map(channelName).join(', ')],
    ['test', `${command}  on the server's machine`],
  ]
  const lines = ['', ...factLines(facts, theme, 10), '']
  const list = useList({
    name: `refusals ${name}`,
    rows: recentRefusals,
    height: height - lines.length - 2,
    getRowId: ({ requestId, at }) => `${requestId} ${at}`,
  })
  const { selected } = list
  useBreadcrumbs([name])
  useKeys('detail', { back: close })
  useKeys('providers', {
    open:
      selected?.requestId.startsWith('otp_') === true
        ? { run: () => go('otp', { requestId: selected.requestId }), label: 'open request' }
        : undefined,
    copy: { run: () => copy(command, 'command'), label: 'copy test command' },
  })
  const columns: Column<Refusal>[] = [
    { title: 'TIME', width: 11, cell: ({ at }) => recentTime(at, nowMs) },
    {
      title: 'RESULT',
      width: 12,
      cell: ({ outcome }) =>
        outcome === 'refused' ? theme.status('bad', 'refused') : theme.status('warning', 'uncertain'),
    },
    { title: 'CHANNEL', width: 10, dropPriority: 2, cell: ({ channel }) => channelName(channel) },
    { title: 'FAILURE', width: 16, cell: ({ error }) => reasonWords(error ?? '-') },
    {
      title: 'PROVIDER SAID',
      width: 13,
      grow: 1,
      dropPriority: 1,
      cell: ({ providerReply }) => providerReply ?? '-',
    },
  ]
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines lines={lines} width={width} />
      <Rule width={width} title="Messages that it did not accept" />
      <ListTable
        list={list}
        columns={columns}
        width={width}
        empty={['None of yours since the server started.']}
      />
    </Box>
  )
}
