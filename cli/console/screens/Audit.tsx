import { Box } from 'ink'
import { useState } from 'react'
import { listAudit } from '../../client/find.ts'
import type { AuditEntry } from '../../client/resources.ts'
import { shortenIds } from '../../terminal/table.ts'
import { localTime, recentTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import { Lines } from '../components/Lines.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { Rule } from '../components/Rule.tsx'
import { useConsole } from '../console-context.ts'
import { parseAuditSearch } from '../entry-search.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePersistentState } from '../hooks/use-persistent-state.ts'
import { slowPollMs, usePolled } from '../hooks/use-polled.ts'
import { factLines, type Fact } from '../lines/facts.ts'
import type { Screen, ScreenProps } from '../screen.ts'

/** Screen with the audit trail: who changed what, from where. */
export const auditScreen: Screen = {
  title: 'Audit',
  commands: ['otpd audit', 'otpd audit --action app.deleted', 'otpd audit --json'],
  View: AuditView,
}

const detailHeight = 10
const newestMax = 200
const searchedMax = 2000

function AuditView({ width, height }: ScreenProps) {
  const { api, theme, copy } = useConsole()
  const nowMs = useNow()
  const [isOpen, setOpen] = useState(false)
  const { data: applications = [] } = useApplications()
  const [searchText, setSearchText] = usePersistentState('audit search', '')
  const search = parseAuditSearch(searchText, applications)
  // A text that the server cannot search for is looked for in more entries.
  const entriesMax = searchText !== '' && search === null ? searchedMax : newestMax
  const entries = usePolled(
    `audit ${entriesMax} ${JSON.stringify(search)}`,
    () => listAudit(api, search ?? {}, entriesMax),
    { intervalMs: slowPollMs },
  )
  const isSplit = isOpen && height >= detailHeight + 5
  const list = useList({
    name: 'audit',
    rows: entries.data ?? [],
    height: height - 1 - (isSplit ? detailHeight : 0),
    getRowId: ({ id }) => id,
    getFilterText: (entry) => Object.values(entry).join(' '),
    isServerFiltered: search !== null,
    onFilter: setSearchText,
  })
  const { selected } = list
  useKeys('audit', {
    open: selected === null || isOpen ? undefined : () => setOpen(true),
    copy: selected && (() => copy(selected.targetId ?? selected.id, 'id')),
  })
  useKeys('detail', { back: isOpen ? () => setOpen(false) : undefined })
  if (entries.data === undefined) return <LoadingOrError polled={entries} width={width} height={height} />
  const columns: Column<AuditEntry>[] = [
    { title: 'TIME', width: 11, cell: ({ at }) => recentTime(at, nowMs) },
    { title: 'ACTION', width: 24, cell: ({ action }) => action },
    { title: 'TARGET', width: 20, grow: 2, maxWidth: 40, cell: targetText },
    {
      title: 'DETAIL',
      width: 24,
      grow: 2,
      maxWidth: 48,
      dropPriority: 2,
      cell: ({ detail }) => shortenIds(detail ?? ''),
    },
    { title: 'FROM', width: 15, grow: 1, maxWidth: 39, dropPriority: 1, cell: originText },
    { title: 'ID', width: 30, dropPriority: 3, cell: ({ targetId }) => targetId ?? '' },
  ]
  const details = selected === null ? [] : factLines(auditFacts(selected), theme)
  if (isOpen && !isSplit) return <Lines lines={details} width={width} height={height} />
  return (
    <Box flexDirection="column" width={width} height={height}>
      <ListTable
        list={list}
        columns={columns}
        width={width}
        empty={search === null ? empty : emptyFiltered}
      />
      {isSplit && <Rule width={width} title="Entry" />}
      {isSplit && <Lines lines={details} width={width} height={detailHeight - 1} />}
    </Box>
  )
}

const empty = [
  'Nothing is recorded yet. Logins, and changes of projects, applications and webhooks appear here.',
]

const emptyFiltered = ['No matching entries. Press esc to see all.']

const targetText = ({ targetName, targetId }: AuditEntry) => targetName ?? shortenIds(targetId ?? '')

const originText = ({ source, ip }: AuditEntry) => ip ?? source

const auditFacts = (entry: AuditEntry): Fact[] => [
  ['action', entry.action],
  ['time', `${localTime(entry.at)}  (${entry.at})`],
  ['target', entry.targetId === null ? null : `${entry.targetName ?? ''}  ${entry.targetId}`.trim()],
  ['detail', entry.detail],
  ['by', entry.actorId ?? (entry.source === 'api' ? 'unknown' : 'the operator')],
  ['from', `${originText(entry)}${entry.userAgent === null ? '' : `  ${entry.userAgent}`}`],
  ['API token', entry.tokenId],
  ['call', entry.traceId],
  ['entry', entry.id],
]
