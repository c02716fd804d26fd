import { Box } from 'ink'
import { useState } from 'react'
import { quickStarts } from '../../terminal/quick-start.ts'
import { Lines } from '../components/Lines.tsx'
import { useConsole } from '../console-context.ts'
import { useKept } from '../hooks/use-persistent-state.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { spread, type Line } from '../spans.ts'
import type { TabProps } from './AppDetail.tsx'

/** How a backend calls the application: to be read, and to be copied whole. */
export function AppQuickStart({ app, keys, width, height }: TabProps) {
  const { theme, copy, connection } = useConsole()
  const { paint, symbols } = theme
  const all = quickStarts({ serverUrl: connection.server.url, app })
  const [title, setTitle] = useKept<string>('apps quick start', all[0].title)
  const [top, setTop] = useState(0)
  const at = Math.max(
    0,
    all.findIndex((one) => one.title === title),
  )
  const shown = all[at] ?? all[0]
  const other = all[(at + 1) % all.length] ?? all[0]
  const lines = shown.text.trimEnd().split('\n')
  const room = height - 2
  const last = Math.max(0, lines.length - room)
  const from = Math.min(top, last)
  const scroll = (by: number) => setTop(Math.max(0, Math.min(last, from + by)))
  useKeys('list', {
    down: () => scroll(1),
    up: () => scroll(-1),
    pageDown: () => scroll(room - 1),
    pageUp: () => scroll(1 - room),
    top: () => setTop(0),
    bottom: () => setTop(last),
  })
  useKeys('apps', {
    ...keys,
    language: {
      run() {
        setTitle(other.title)
        setTop(0)
      },
      label: other.title,
    },
    copy: () => copy(shown.text, `the ${shown.title} snippet`),
  })
  const below = lines.length - from - room
  const names = all.map((one) =>
    one === shown
      ? { text: `[${one.title}]`, paint: paint.bold }
      : { text: ` ${one.title} `, paint: paint.dim },
  )
  const more = below > 0 ? { text: `${symbols.down} ${below} more lines `, paint: paint.yellow } : ''
  const code = lines.slice(from, from + room).map((text): Line => ({
    text: ` ${text}`,
    paint: /^\s*(?:#|\/\/)/.test(text) ? paint.dim : undefined,
  }))
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines lines={[spread(names, more, width), '']} width={width} />
      <Lines lines={code} width={width} height={room} />
    </Box>
  )
}
