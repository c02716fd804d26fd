import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { logoCharactersMax } from '../../src/shared/logo.ts'
import { usageError } from '../terminal/errors.ts'

const imageTypes: Readonly<Record<string, string>> = {
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
}

/**
 * Reads the logo of a ready page as a data URL. The server checks that its bytes are of an image.
 *
 * @throws usage error for a file that cannot be read, is no image or is too large
 */
export function readLogo(path: string): string {
  const type = imageTypes[extname(path).toLowerCase()]
  if (type === undefined) throw usageError('A logo must be a .png, .jpg, .gif or .webp file.')
  const logo = `data:${type};base64,${readImage(path).toString('base64')}`
  if (logo.length <= logoCharactersMax) return logo
  throw usageError(`The logo is too large: ${path}`, 'Use an image of less than 24 KiB.')
}

function readImage(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch {
    throw usageError(`The logo cannot be read: ${path}`, 'Correct the path or its permissions.')
  }
}

/** Describes a logo: `12 KiB png`. */
export function logoText(logo: string): string {
  const [, type = ''] = /^data:image\/(\w+)/.exec(logo) ?? []
  return `${Math.ceil(logo.length / 1024)} KiB ${type}`
}
