import { mergeKeys, type ListOwner } from './list-chunks.ts'

/** Lists that gain or lose a row. A constant for each kind of change, so that recording one costs little. */
export type ListChange = { readonly add: readonly string[]; readonly remove: readonly string[] }

/** A change of the lists of some owners by one row. */
export type ListEntry = { change: ListChange; owners: readonly ListOwner[]; key: string }

/** The changed keys of one list. `removed` has those whose last change removed them. */
type TailList = { added: string[]; sortedCount: number; removed: Set<string> | undefined }

/** Changes of the keys of one list, sorted. */
export type TailKeys = { added: readonly string[]; removed: ReadonlySet<string> | undefined }

export type ListTail = ReturnType<typeof createListTail>

/** Holds the newest changes of all lists in memory. */
export function createListTail() {
  const owners = new Map<ListOwner, Map<string, TailList>>()
  let size = 0

  function listOf(owner: ListOwner, name: string): TailList {
    let lists = owners.get(owner)
    if (!lists) owners.set(owner, (lists = new Map()))
    let list = lists.get(name)
    if (!list) lists.set(name, (list = { added: [], sortedCount: 0, removed: undefined }))
    return list
  }

  function toKeys(list: TailList): TailKeys {
    const { added, sortedCount } = list
    if (sortedCount < added.length) {
      // A new array: a reader may be iterating over the old one.
      list.added = mergeKeys(added.slice(0, sortedCount), added.slice(sortedCount).toSorted())
      list.sortedCount = list.added.length
    }
    return list
  }

  return {
    /** Number of entries. */
    size: () => size,

    apply({ change, owners: entryOwners, key }: ListEntry): void {
      size++
      for (const owner of entryOwners) {
        for (const name of change.add) {
          const list = listOf(owner, name)
          list.removed?.delete(key)
          const { added, sortedCount } = list
          const last = added[sortedCount - 1]
          if (sortedCount === added.length && (last === undefined || last < key)) list.sortedCount++
          added.push(key)
        }
        for (const name of change.remove) {
          const list = listOf(owner, name)
          list.removed ??= new Set()
          list.removed.add(key)
        }
      }
    },

    keys(owner: ListOwner, name: string): TailKeys | undefined {
      const list = owners.get(owner)?.get(name)
      return list && toKeys(list)
    },

    /** All lists in the order of the primary key of the stored chunks. */
    *all(): Generator<{ owner: ListOwner; list: string; keys: TailKeys }, undefined> {
      // SQLite sorts numbers before texts.
      const isText = (owner: ListOwner) => (typeof owner === 'string' ? 1 : 0)
      const sorted = [...owners].toSorted(([a], [b]) => isText(a) - isText(b) || (a < b ? -1 : a > b ? 1 : 0))
      for (const [owner, lists] of sorted) {
        for (const name of [...lists.keys()].toSorted()) {
          const list = lists.get(name)
          if (list) yield { owner, list: name, keys: toKeys(list) }
        }
      }
    },
  }
}

/** Writes entries as text: a line for each, with its lists, owners and key. */
export function formatEntries(entries: readonly ListEntry[]): string {
  let text = ''
  let separator = ''
  for (const { change, owners, key } of entries) {
    text += `${separator}${formatChange(change)}\t${owners.join(',')}\t${key}`
    separator = '\n'
  }
  return text
}

const changeTexts = new WeakMap<ListChange, string>()
const changesByText = new Map<string, ListChange>()

function formatChange(change: ListChange): string {
  let text = changeTexts.get(change)
  if (text === undefined) {
    text = [...change.add.map((list) => `+${list}`), ...change.remove.map((list) => `-${list}`)].join(',')
    changeTexts.set(change, text)
  }
  return text
}

/** Reads what `formatEntries` wrote. */
export function* parseEntries(text: string): Generator<ListEntry, undefined> {
  for (const line of text.split('\n')) {
    const [changeText = '', owners = '', key = ''] = line.split('\t')
    let change = changesByText.get(changeText)
    if (!change) changesByText.set(changeText, (change = parseChange(changeText)))
    yield { change, owners: owners === '' ? [] : owners.split(',').map(parseOwner), key }
  }
}

function parseChange(text: string): ListChange {
  const lists = text === '' ? [] : text.split(',')
  const named = (sign: string) => lists.flatMap((list) => (list.startsWith(sign) ? [list.slice(1)] : []))
  return { add: named('+'), remove: named('-') }
}

const parseOwner = (text: string): ListOwner => (/^\d+$/.test(text) ? Number(text) : text)
