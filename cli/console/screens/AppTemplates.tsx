import type { Column } from '../columns.ts'
import { ListTable } from '../components/ListTable.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { useConsole } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useResource } from '../hooks/use-resource.ts'
import type { TabProps } from './app-tab.ts'
import { oneLine, templateDialog, type TemplateRow } from './template-dialogs.ts'

const empty = [
  'No templates yet: messages have the built-in texts.',
  '',
  'Press n to write a text for a purpose, such as a login or a payment; or:',
  '',
  "  otpd template set login --app APP --text en='{code} is your {app} code.'",
]

/** Tab with the texts of the application's templates. */
export function AppTemplates({ app, keys, width, height }: TabProps) {
  const console = useConsole()
  const { openDialog, copy } = console
  const { id } = app
  const templates = useResource('/v1/applications/:id/templates', { params: { id } })
  const all = templates.data ?? []
  const list = useList<TemplateRow>({
    name: `app ${id} templates`,
    rows: all.flatMap((template) =>
      Object.entries(template.texts).map(([locale, text]) => ({ template, locale, text })),
    ),
    height: height - 1,
    getRowId: ({ template, locale }) => `${template.name} ${locale}`,
    getFilterText: ({ template, locale, text }) => `${template.name} ${locale} ${text}`,
  })
  const { selected } = list
  useKeys('apps', {
    ...keys,
    create: { run: () => openDialog(templateDialog(console, id, all)), label: 'new text' },
    text: selected && (() => openDialog(templateDialog(console, id, all, selected))),
    copy: selected && { run: () => copy(selected.text, 'text'), label: 'copy text' },
  })
  if (templates.data === undefined) return <LoadingOrError polled={templates} width={width} height={height} />
  const columns: Column<TemplateRow>[] = [
    { title: 'TEMPLATE', width: 12, grow: 1, cell: ({ template }) => template.name },
    { title: 'LANGUAGE', width: 9, cell: ({ locale }) => locale },
    { title: 'SMS', width: 4, dropPriority: 1, cell: partsOf },
    { title: 'TEXT', width: 30, grow: 4, cell: ({ text }) => oneLine(text) },
  ]
  return <ListTable list={list} columns={columns} width={width} empty={empty} />
}

const partsOf = ({ template, locale }: TemplateRow) =>
  String(template.sizes.find((size) => size.locale === locale)?.parts ?? '')
