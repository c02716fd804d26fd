import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chownSync, linkSync, lstatSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runBinary, startServer } from '../helpers/binary.ts'

/** The user of a server, as `User=` of its unit names it; any but root. */
const owner = 65_534

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name))
const ownersBelow = (folder: string) =>
  Object.fromEntries(filesBelow(folder).map((path) => [path.slice(folder.length + 1), lstatSync(path).uid]))

describe.skipIf(process.getuid?.() !== 0)('what root makes in the data directory of another user', () => {
  let home: string
  let dataDir: string
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'otpd-root-'))
    dataDir = join(home, 'data')
    const server = await startServer({ home, dataDir })
    await server.stop()
    for (const path of [dataDir, ...filesBelow(dataDir)]) chownSync(path, owner, owner)
  })
  afterAll(() => rmSync(home, { recursive: true, force: true }))

  test.each([
    [['backup']],
    [['admin', 'setup-token']],
    [['admin', 'rotate-master-key', '--yes']],
    [['restore', 'latest', '--yes']],
  ])('belongs to that user: %j', async (args) => {
    const { exitCode, stderr } = await runBinary(home, [...args, '--data-dir', dataDir])
    expect([exitCode, stderr]).toEqual([0, expect.any(String)])
    expect(Object.entries(ownersBelow(dataDir)).filter(([, uid]) => uid !== owner)).toEqual([])
  })

  test('does not include a file of root elsewhere, which a link leads to', async () => {
    const secret = join(home, 'secret')
    writeFileSync(secret, 'of root')
    linkSync(secret, join(dataDir, 'link'))
    expect((await runBinary(home, ['backup', '--data-dir', dataDir])).exitCode).toBe(0)
    expect(lstatSync(secret).uid).toBe(0)
    rmSync(join(dataDir, 'link'))
  })
})
