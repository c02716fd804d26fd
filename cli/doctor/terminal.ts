import { realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { ok, warning, type Check } from '../../src/shared/check.ts'
import { isUtf8Locale, type Io } from '../terminal/io.ts'
import type { Output } from '../terminal/output.ts'
import { version } from '../version.ts'

/** Reports what the terminal can show, for users whose screen looks wrong. */
export function terminalCheck({ env, stdoutIsTerminal }: Io, { paint, columns }: Output): Check {
  if (!stdoutIsTerminal) return ok('terminal', 'none: output has no colour and no width limit')
  const isUtf8 = isUtf8Locale(env)
  const width = columns()
  const facts = [
    width === null ? 'unknown width' : `${width} columns`,
    isUtf8 ? 'UTF-8' : 'not UTF-8',
    paint.isColorSupported ? 'colour' : 'no colour',
  ].join(', ')
  if (isUtf8) return ok('terminal', facts)
  return warning('terminal', `${facts}: lines and symbols may look broken`, 'export LC_ALL=C.UTF-8')
}

/** Warns of more than one otpd in PATH, where an old one may come first. */
export function programCheck({ env }: Io): Check {
  const paths = new Set(
    (env.PATH ?? '').split(delimiter).flatMap((folder) => resolvePath(join(folder || '.', 'otpd'))),
  )
  if (paths.size < 2) return ok('program', `otpd ${version} (${process.platform}-${process.arch})`)
  const [first = '', ...others] = paths
  return warning(
    'program',
    `otpd ${version}, but PATH has several: ${first} comes before ${others.join(', ')}`,
    `Remove the old ones; otpd version prints the version of each.`,
  )
}

function resolvePath(path: string): string[] {
  try {
    return [realpathSync(path)]
  } catch {
    return []
  }
}
