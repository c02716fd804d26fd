import { errorLines, useConsole } from '../console-context.ts'
import type { Polled } from '../hooks/use-polled.ts'
import { wrap, type Line } from '../spans.ts'
import { Lines } from './Lines.tsx'

/** Shown instead of data that is not there yet: `Loading`, or the error. */
export function LoadingOrError({
  polled,
  width,
  height,
}: {
  polled: Polled<unknown>
  width: number
  height: number
}) {
  const { paint, status } = useConsole().theme
  return <Lines lines={['', ...loadingLines()]} width={width} height={height} />

  function loadingLines(): Line[] {
    if (polled.error === null) return [{ text: ` Loading`, paint: paint.dim }]
    const [message = '', ...hints] = errorLines(polled.error).flatMap((text) => wrap(text, width - 4))
    return [[' ', status('bad', message)], ...hints.map((hint) => ({ text: `   ${hint}`, paint: paint.dim }))]
  }
}
