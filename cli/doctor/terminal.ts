import { realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { ok, warning, type Check } from './check.ts'
import { isUtf8Locale, type Io } from '../terminal/io.ts'
import type { Output } from '../terminal/output.ts'
import { version } from '../version.ts'

/** What the terminal can show, for those whose screen looks wrong. */
export function terminalCheck({ env, stdoutIsTerminal }: Io, { paint, columns }: Output): Check {
  if (!stdoutIsTerminal) return ok('terminal', 'none: text without colour, of any width')
  const isUtf8 = isUtf8Locale(env)
  const width = columns()
  const facts = [
    width === null ? 'of unknown width' : `${width} columns`,
    isUtf8 ? 'UTF-8' : 'not UTF-8',
    paint.isColorSupported ? 'colour' : 'no colour',
  ].join(', ')
  if (isUtf8) return ok('terminal', facts)
  return warning('terminal', `${facts}: lines and signs may be broken`, 'export LC_ALL=C.UTF-8')
}

/** More than one otpd in PATH: an old one may answer. */
export function programCheck({ env }: Io): Check {
  const paths = new Set(
    (env.PATH ?? '').split(delimiter).flatMap((folder) => resolvePath(join(folder || '.', 'otpd'))),
  )
  if (paths.size < 2) return ok('program', `otpd ${version} (${process.platform}-${process.arch})`)
  const [first = '', ...others] = paths
  return warning(
    'program',
    `otpd ${version}, and PATH has others: ${first} comes before ${others.join(', ')}`,
    `Remove what is old: otpd version tells of each.`,
  )
}

function resolvePath(path: string): string[] {
  try {
    return [realpathSync(path)]
  } catch {
    return []
  }
}
