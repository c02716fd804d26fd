import { Box, Text } from 'ink'
import { useConsole } from '../console-context.ts'
import { drawLine, type Line } from '../spans.ts'

type Props = {
  lines: readonly Line[]
  width: number
  /** Exactly so many: what is missing is blank, what is over is left out. Without it as many as there are lines. */
  height?: number
}

/** Lines of text, each cut to the width. All text of the console is drawn here. */
export function Lines({ lines, width, height = lines.length }: Props) {
  const { theme } = useConsole()
  return (
    <Box flexDirection="column" width={width} height={height} flexShrink={0} overflow="hidden">
      {Array.from({ length: height }, (_, index) => (
        // A place on the screen is its own identity: what stands there changes with every answer.
        <Text key={index} wrap="truncate">
          {drawLine(lines[index] ?? '', width, theme.symbols.ellipsis) || ' '}
        </Text>
      ))}
    </Box>
  )
}
