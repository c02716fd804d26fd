import { exitCodes, type ExitCode } from './errors.ts'
import type { Io } from './io.ts'

/**
 * Runs what has no end of its own. Ctrl-C or SIGTERM aborts the signal; once the body has come to its end, the exit
 * code is that of the signal.
 */
export async function untilInterrupted(
  io: Io,
  body: (signal: AbortSignal) => Promise<void>,
): Promise<ExitCode> {
  const abort = new AbortController()
  let exitCode: ExitCode = exitCodes.done
  const stopListening = io.onInterrupt?.((name) => {
    exitCode = name === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated
    abort.abort()
  })
  try {
    await body(abort.signal)
  } finally {
    stopListening?.()
  }
  return exitCode
}

/** Resolves once the signal is aborted. */
export const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
