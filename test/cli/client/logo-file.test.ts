import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readLogo } from '../../../cli/client/logo-file.ts'
import { logoCharactersMax } from '../../../src/shared/logo.ts'

test('a logo is as large as the server takes it, and a larger one is refused with what to do', () => {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-logo-'))
  const path = join(folder, 'shop.png')
  writeFileSync(path, Buffer.alloc(24 * 1024 - 18))
  expect(readLogo(path).length).toBeLessThanOrEqual(logoCharactersMax)
  for (const bytes of [24 * 1024, 1024 * 1024]) {
    writeFileSync(path, Buffer.alloc(bytes))
    expect(() => readLogo(path)).toThrow(`The logo is too large: ${path}`)
  }
  expect(() => readLogo(join(folder, 'shop.svg'))).toThrow('must be a .png, .jpg, .gif or .webp file')
  expect(() => readLogo(join(folder, 'none.png'))).toThrow('cannot be read')
  rmSync(folder, { recursive: true })
})
