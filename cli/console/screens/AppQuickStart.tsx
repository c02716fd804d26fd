import { Box } from 'ink'
import { useState } from 'react'
import { quickStarts } from '../../client/quick-start.ts'
import { Lines } from '../components/Lines.tsx'
import { useConsole } from '../console-context.ts'
import { usePersistentState } from '../hooks/use-persistent-state.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { justify, optionSpan, type Line } from '../spans.ts'
import type { TabProps } from './app-tab.ts'

/** Tab with sample code that calls the application, to read and to copy. */
export function AppQuickStart({ app, keys, width, height }: TabProps) {
  const { theme, copy, connection } = useConsole()
  const { paint, symbols } = theme
  const snippets = quickStarts({ serverUrl: connection.server.url, app })
  const [title, setTitle] = usePersistentState<string>('apps quick start', snippets[0].title)
  const [scrollTop, setScrollTop] = useState(0)
  const snippetIndex = Math.max(
    0,
    snippets.findIndex((snippet) => snippet.title === title),
  )
  const shownSnippet = snippets[snippetIndex] ?? snippets[0]
  const nextSnippet = snippets[(snippetIndex + 1) % snippets.length] ?? snippets[0]
  const lines = shownSnippet.text.trimEnd().split('\n')
  const codeHeight = height - 2
  const maxScroll = Math.max(0, lines.length - codeHeight)
  const firstLine = Math.min(scrollTop, maxScroll)
  const scroll = (delta: number) => setScrollTop(Math.max(0, Math.min(maxScroll, firstLine + delta)))
  useKeys('list', {
    down: () => scroll(1),
    up: () => scroll(-1),
    pageDown: () => scroll(codeHeight - 1),
    pageUp: () => scroll(1 - codeHeight),
    top: () => setScrollTop(0),
    bottom: () => setScrollTop(maxScroll),
  })
  useKeys('apps', {
    ...keys,
    language: {
      run() {
        setTitle(nextSnippet.title)
        setScrollTop(0)
      },
      label: nextSnippet.title,
    },
    copy: () => copy(shownSnippet.text, `the ${shownSnippet.title} snippet`),
  })
  const linesBelow = lines.length - firstLine - codeHeight
  const titles = snippets.map((snippet) => optionSpan(snippet.title, snippet === shownSnippet, paint))
  const moreHint =
    linesBelow > 0 ? { text: `${symbols.down} ${linesBelow} more lines `, paint: paint.yellow } : ''
  const code = lines.slice(firstLine, firstLine + codeHeight).map((text): Line => ({
    text: ` ${text}`,
    paint: /^\s*(?:#|\/\/)/.test(text) ? paint.dim : undefined,
  }))
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines lines={[justify(titles, moreHint, width), '']} width={width} />
      <Lines lines={code} width={width} height={codeHeight} />
    </Box>
  )
}
