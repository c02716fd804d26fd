import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { binaryPath, runBinary, startServer } from '../../helpers/binary.ts'
import type { RunResult } from '../../helpers/run-command.ts'
import { startMoto } from '../../helpers/moto.ts'
import { logIn, makeServerHome } from '../../helpers/webhook-client.ts'
import { startFaultProxy } from './fault-proxy.ts'

/** A server, an S3 service behind a proxy that can fail, and commands on them. */
export type BackupRun = Awaited<ReturnType<typeof startRun>>

/** Starts them. @param motoServer path of `moto_server` */
export async function startRun(motoServer: string) {
  const moto = await startMoto(motoServer)
  const proxy = startFaultProxy(moto.url)
  const home = makeServerHome()
  const server = await startServer({ ...home, env: { ...home.env, OTPD_PHONE_SEND_BUDGET: 'off' } })
  const env = {
    OTPD_DATA_DIR: server.dataDir,
    OTPD_BACKUP_TO: 's3://backups/otpd',
    OTPD_BACKUP_KEEP: '100',
    OTPD_BACKUP_S3_ENDPOINT: proxy.url,
    AWS_ACCESS_KEY_ID: 'AK',
    AWS_SECRET_ACCESS_KEY: 'SK',
  }
  const bucket = new Bun.S3Client({
    endpoint: moto.url,
    bucket: 'backups',
    accessKeyId: 'AK',
    secretAccessKey: 'SK',
    region: 'us-east-1',
  })
  return {
    server,
    proxy,
    serviceUrl: moto.url,
    /** Lets the service run only while nothing else does, as if it were on another machine. */
    setServiceAside: () =>
      void Bun.spawnSync(['chrt', '--all-tasks', '--idle', '--pid', '0', String(moto.pid)]),
    bucket,
    env,
    app: await (await logIn(server.url)).createApplication(),
    otpd: (args: string[], more: Record<string, string> = {}) =>
      runBinary(server.home, args, { env: { ...env, ...more } }),
    /** Starts `otpd backup` as the server's schedule does, below its priority. */
    startBackup: (more: Record<string, string> = {}) =>
      Bun.spawn(['nice', '-n', '19', binaryPath, 'backup', '--json'], {
        cwd: server.home,
        env: { PATH: process.env['PATH'] ?? '', HOME: server.home, ...env, ...more },
        stdout: 'pipe',
        stderr: 'pipe',
      }),
    /** Lists the keys of sealed backups. */
    async keys() {
      const { contents = [] } = await bucket.list({ prefix: 'otpd/' })
      return contents.map(({ key }) => key).filter((key) => key.endsWith('.sealed'))
    },
    /** Restores a backup into a directory of its own, and returns the path of its database. */
    async restore(name: string): Promise<string> {
      const dataDir = join(server.home, `restored-${name.split('/').at(-1)}`)
      mkdirSync(dataDir, { mode: 0o700 })
      cpSync(join(server.dataDir, 'master.key'), join(dataDir, 'master.key'))
      const args = ['restore', name, '--yes', '--data-dir', dataDir]
      requireCode(await runBinary(server.home, args, { env: { ...env, OTPD_DATA_DIR: dataDir } }), 0)
      return join(dataDir, 'otpd.db')
    },
    async stop() {
      await server.stop()
      await proxy.stop()
      await moto.stop()
    },
  }
}

/** @throws Error with the output, if the command ended with another code */
export function requireCode(result: RunResult, exitCode: number): RunResult {
  if (result.exitCode === exitCode) return result
  throw new Error(`exit code ${result.exitCode} instead of ${exitCode}: ${result.stdout}${result.stderr}`)
}
