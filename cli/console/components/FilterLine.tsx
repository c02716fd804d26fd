import { useConsole } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import type { List } from '../hooks/use-list.ts'
import { applyTyping } from '../key-router.ts'
import { Lines } from './Lines.tsx'

type Props = {
  list: Pick<List<unknown>, 'filter' | 'isFiltering' | 'setFilter' | 'endFilter'>
  width: number
}

/** Shows the filter of a list, and takes its text while it is typed. */
export function FilterLine({ list, width }: Props) {
  const { theme } = useConsole()
  const { paint, symbols } = theme
  useKeys(
    'filter',
    {
      keep: () => list.endFilter(list.filter),
      clear: () => list.endFilter(''),
    },
    {
      isModal: true,
      isActive: list.isFiltering,
      onText: (typedInput) => list.setFilter(applyTyping(list.filter, typedInput)),
    },
  )
  const cursor = list.isFiltering ? symbols.cursor : ''
  return <Lines lines={[[{ text: '/ ', paint: paint.cyan }, list.filter, cursor]]} width={width} />
}
