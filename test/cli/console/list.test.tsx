import { afterEach, expect, test } from 'bun:test'
import { Text } from 'ink'
import { ListTable } from '../../../cli/console/components/ListTable.tsx'
import { useList } from '../../../cli/console/hooks/use-list.ts'
import { createStore, useStore } from '../../../cli/console/store.ts'
import { renderConsole } from '../../helpers/console-render.tsx'

type Row = { id: string }
type Shown = { rows: readonly Row[]; height: number; isOpen: boolean }

const numbered = (from: number, to: number): Row[] =>
  Array.from({ length: to - from + 1 }, (_, index) => ({ id: `row ${from + index}` }))

let close = () => {}
afterEach(() => close())

/** A list of rows that the test changes, under StrictMode. */
async function renderList(rows: readonly Row[], { height = 5, isTail = false } = {}) {
  const shown = createStore<Shown>({ rows, height, isOpen: true })
  function Parent() {
    const { isOpen, ...props } = useStore(shown)
    return isOpen ? <RowList {...props} /> : <Text>closed</Text>
  }
  function RowList(props: Pick<Shown, 'rows' | 'height'>) {
    const list = useList<Row>({
      name: 'rows',
      ...props,
      isTail,
      getRowId: ({ id }) => id,
      getFilterText: ({ id }) => id,
    })
    const columns = [{ title: 'ID', width: 10, cell: ({ id }: Row) => id }]
    return <ListTable list={list} columns={columns} width={40} empty={['none']} />
  }
  const rendered = renderConsole(<Parent />)
  close = rendered.close
  await rendered.waitForText('ID')
  return {
    ...rendered,
    change: (changes: Partial<Shown>) => shown.set((previous) => ({ ...previous, ...changes })),
    visible: () => rendered.frame().match(/row \d+/g),
  }
}

test('the selection stays on its row when rows are added and removed', async () => {
  const list = await renderList(numbered(10, 30))
  list.press('j', 'j')
  await list.waitForText('▸ row 12')
  list.change({ rows: numbered(1, 30) })
  await list.waitForText('row 13')
  expect(list.frame()).toContain('▸ row 12')
  list.change({ rows: numbered(11, 20) })
  await list.waitForText('row 15')
  expect(list.frame()).toContain('▸ row 12')
})

test('the selection stays at its position when its row is gone', async () => {
  const list = await renderList(numbered(1, 9))
  list.press('j', 'j')
  await list.waitForText('▸ row 3')
  list.change({ rows: numbered(1, 9).filter(({ id }) => id !== 'row 3') })
  await list.waitForText('▸ row 4')
  list.change({ rows: numbered(1, 1) })
  await list.waitForText('▸ row 1')
})

test('the window moves by as little as needed, also when its height changes', async () => {
  const list = await renderList(numbered(1, 30))
  list.press('j', 'j', 'j', 'j', 'j', 'j')
  await list.waitForText('▸ row 7')
  expect(list.visible()).toEqual(['row 3', 'row 4', 'row 5', 'row 6', 'row 7'])
  list.change({ height: 3 })
  await list.waitForText(/ {2}row 5\n {2}row 6\n▸ row 7 *\n? *$/)
  list.change({ height: 5 })
  await list.waitForText('row 9')
  expect(list.visible()).toEqual(['row 5', 'row 6', 'row 7', 'row 8', 'row 9'])
  expect(list.frame()).toContain('▸ row 7')
})

test('a list that is opened again is where it was left', async () => {
  const list = await renderList(numbered(1, 30))
  list.press('G', 'k')
  await list.waitForText('▸ row 29')
  list.change({ isOpen: false })
  await list.waitForText('closed')
  list.change({ isOpen: true })
  await list.waitForText('▸ row 29')
  expect(list.visible()).toEqual(['row 26', 'row 27', 'row 28', 'row 29', 'row 30'])
})

test('a log follows its end until another row is selected', async () => {
  const list = await renderList(numbered(1, 9), { isTail: true })
  await list.waitForText('▸ row 9')
  list.change({ rows: numbered(1, 10) })
  await list.waitForText('▸ row 10')
  list.press('k')
  await list.waitForText('▸ row 9')
  list.change({ rows: numbered(1, 20) })
  await list.waitForText('▸ row 9')
  list.press('G')
  await list.waitForText('▸ row 20')
})

test('a filter keeps the selection on its row, and ends with esc', async () => {
  const list = await renderList(numbered(1, 30))
  list.press('/', '2', '1')
  await list.waitForText('/ 21█')
  await list.waitForText('▸ row 21')
  expect(list.visible()).toEqual(['row 21'])
  list.press('enter', 'esc')
  await list.waitForText('row 20')
  expect(list.frame()).toContain('▸ row 21')
})
