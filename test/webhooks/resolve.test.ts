import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createResolver } from '../../src/webhooks/resolve.ts'

test('addresses are kept for a while, and failures are not', async () => {
  const names: string[] = []
  let fails = true
  const lookupAll = async (host: string) => {
    names.push(host)
    if (fails) throw new Error('no such name')
    return [{ address: `192.0.2.${names.length}`, family: 4 }]
  }
  const resolve = createResolver(1_000, lookupAll, 30)
  expect(resolve('a.example')).rejects.toThrow('no such name')
  await resolve('a.example').catch(() => undefined)
  fails = false
  const [first] = await resolve('a.example')
  expect(await resolve('a.example')).toEqual(first ? [first] : [])
  await resolve('b.example')
  const lookups = names.length
  while ((await resolve('a.example'))[0]?.address === first?.address) await new Promise(setImmediate)
  expect(names.slice(lookups)).toEqual(['a.example'])
})

test('many names that never resolve leave room for others', async () => {
  const hanging = new Promise<never>(() => {})
  const addresses = [{ address: '192.0.2.1', family: 4 }]
  const lookupAll = (host: string) => (host.startsWith('hang') ? hanging : Promise.resolve(addresses))
  const resolve = createResolver(60_000, lookupAll)
  for (let index = 0; index < 500; index++) resolve(`hang${index}.example`).catch(() => {})
  expect(await resolve('good.example')).toEqual(addresses)
})

// With a resolv.conf of its own.
const canMount = process.getuid?.() === 0 && Bun.spawnSync(['unshare', '-m', 'true']).success

test.skipIf(!canMount)('names that no server answers delay no others of the process', () => {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-resolve-'))
  const config = join(folder, 'resolv.conf')
  writeFileSync(config, 'nameserver 127.0.0.77\n')
  const program = `mount --bind ${config} /etc/resolv.conf && exec ${process.execPath} ${import.meta.dir}/resolve-program.ts`
  const { stdout, stderr } = Bun.spawnSync(['unshare', '-m', 'sh', '-c', program], { timeout: 4_000 })
  rmSync(folder, { recursive: true })
  expect([stdout.toString(), stderr.toString()]).toEqual(['10.1.2.3\n', ''])
})
