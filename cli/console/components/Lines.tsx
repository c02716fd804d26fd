import { Box, Text } from 'ink'
import { useConsole } from '../console-context.ts'
import { drawLine, type Line } from '../spans.ts'

type Props = {
  lines: readonly Line[]
  width: number
  /** Exact number of lines: missing ones are blank, excess ones are cut. Defaults to the number of lines given. */
  height?: number
}

/** Draws lines of text, each cut to the width. All text of the console is drawn here. */
export function Lines({ lines, width, height = lines.length }: Props) {
  const { theme } = useConsole()
  return (
    <Box flexDirection="column" width={width} height={height} flexShrink={0} overflow="hidden">
      {Array.from({ length: height }, (_, index) => (
        // A line's position is its identity; its text changes with every response.
        <Text key={index} wrap="truncate">
          {drawLine(lines[index] ?? '', width, theme.symbols.ellipsis) || ' '}
        </Text>
      ))}
    </Box>
  )
}
