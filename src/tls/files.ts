import { setTimeout as sleep } from 'node:timers/promises'
import { minuteMs, secondMs } from '../shared/durations.ts'
import { isRecord } from '../shared/json.ts'
import { readRegularFile } from '../shared/regular-file.ts'
import { endedGraceMs, inspectPair, type InspectedPair, type PairFault } from './pair.ts'
import type { CertificateSource, SourceNeeds } from './source.ts'

/** The two files are seldom replaced in the same moment. */
const settleMs = secondMs

/**
 * Serves the certificate of two files, and exchanges it when their content changes, also behind symbolic links. Files that
 * cannot be served change nothing.
 *
 * @returns the source, or what is wrong with the files
 */
export function openFiles(
  needs: SourceNeeds & { certFile: string; keyFile: string },
): CertificateSource | PairFault {
  const { certFile, keyFile, log, wall, onPair, onOutcome } = needs
  let seen = ''

  /** Reads both files. @returns undefined if they are as they were seen last */
  function read(graceMs: number): InspectedPair | PairFault | undefined {
    const [certificate, key] = [readFile(certFile), readFile(keyFile)]
    if ('fault' in certificate) return certificate
    if ('fault' in key) return key
    const content = `${Bun.hash(certificate.bytes)} ${Bun.hash(key.bytes)}`
    if (content === seen) return undefined
    seen = content
    return inspectPair(certificate, key, { nowMs: wall.now(), graceMs })
  }

  /** Faults that were logged, so that the log does not repeat them each minute. */
  let logged = ''

  const first = read(endedGraceMs)
  if (!first || 'fault' in first) return first ?? readFault(certFile, 'no content')
  return {
    first,
    intervalMs: minuteMs,
    async look(isAsked) {
      let found = read(0)
      if (found && 'fault' in found) {
        await sleep(settleMs)
        seen = ''
        found = read(0)
      }
      if (!found) return
      const fault = 'fault' in found ? found : serve(found)
      if (!fault) {
        logged = ''
        return
      }
      // Looked at again each time: time alone mends a certificate that is not valid yet, or a wrong clock.
      seen = ''
      if (fault.fault === logged && !isAsked) return
      logged = fault.fault
      onOutcome('failed')
      log.error('certificate not exchanged; the old one stays', {
        problem: fault.fault,
        remedy: fault.remedy,
      })
    },
    stop() {},
  }

  function serve(inspected: InspectedPair): PairFault | undefined {
    try {
      onPair(inspected)
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error)
      return {
        path: certFile,
        fault: `The certificate in ${certFile} cannot be served: ${cause}`,
        remedy: 'Name another certificate.',
      }
    }
    onOutcome('renewed')
    const { names, notAfter } = inspected.facts
    log.info('certificate exchanged', { names, until: new Date(notAfter) })
    return undefined
  }
}

function readFile(path: string): { path: string; bytes: Uint8Array } | PairFault {
  try {
    return { path, bytes: readRegularFile(path) }
  } catch (error) {
    return readFault(path, isRecord(error) && typeof error.code === 'string' ? error.code : 'unknown error')
  }
}

const readFault = (path: string, cause: string): PairFault => ({
  path,
  fault: `${path} cannot be read (${cause}).`,
  remedy: 'Correct the file or its permissions.',
})
