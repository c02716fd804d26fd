import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readRegularFile } from '../../src/shared/regular-file.ts'

test('a file over 1 MiB is refused before it is read', () => {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-file-'))
  try {
    const path = join(folder, 'otpd.db')
    writeFileSync(path, 'x')
    expect(readRegularFile(path).toString()).toBe('x')
    // Sparse; more than fits into memory.
    truncateSync(path, 2 ** 40)
    expect(() => readRegularFile(path)).toThrow(expect.objectContaining({ code: 'EFBIG' }))
  } finally {
    rmSync(folder, { recursive: true })
  }
})
