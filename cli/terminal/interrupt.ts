import { CliError, exitCodes, type ExitCode } from './errors.ts'
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

/** Runs what waits for a person and then has an answer. Ctrl-C or SIGTERM aborts the signal and is CliError CANCELED. */
export async function orInterrupted<T>(io: Io, body: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const abort = new AbortController()
  const interrupted = Promise.withResolvers<never>()
  const stopListening = io.onInterrupt?.((name) => {
    const exitCode = name === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated
    interrupted.reject(new CliError(exitCode, 'CANCELED', 'Canceled; nothing was changed.'))
    abort.abort()
  })
  try {
    return await Promise.race([body(abort.signal), interrupted.promise])
  } finally {
    stopListening?.()
  }
}

/** Resolves once the signal is aborted. */
export const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
