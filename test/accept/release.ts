import { readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { version } from '../../cli/version.ts'
import type { AcceptCheck } from './run.ts'

const root = resolve(import.meta.dir, '../..')

/** Builds every target twice, in clones in other folders with another language and time zone, and compares all bytes. */
export const releaseChecks: AcceptCheck[] = [
  {
    name: 'release-targets',
    title: 'two clones build, try and sign the same release',
    needs: ['git', 'ssh-keygen', 'qemu-aarch64-static', 'bwrap'],
    async run(print) {
      const work = join(tmpdir(), `otpd-accept-release-${process.pid}`)
      const shell = async (script: string, env: Record<string, string> = {}) => {
        const child = Bun.spawn(['sh', '-ec', script], {
          env: { ...process.env, ...env },
          stdout: 'pipe',
          stderr: 'pipe',
        })
        const [text, errors, exitCode] = await Promise.all([
          child.stdout.text(),
          child.stderr.text(),
          child.exited,
        ])
        return { text, errors, exitCode }
      }
      const expectExit = async (expected: number[], script: string, env: Record<string, string> = {}) => {
        const { text, errors, exitCode } = await shell(script, env)
        if (!expected.includes(exitCode))
          throw new Error(`${script}: exit code ${exitCode}\n${text}${errors}`)
        return text
      }
      try {
        const key = join(work, 'key')
        await expectExit(
          [0],
          `mkdir -p ${work}/other/place && ssh-keygen -q -t ed25519 -N '' -C test -f ${key}`,
        )
        const build = async (source: string, folder: string, env: Record<string, string>) => {
          const tag = `git -C ${folder} tag -f v${version}`
          await expectExit([0], `git clone -q ${source} ${folder} && ${tag}`)
          const packages = `${join(root, 'node_modules')} ${folder}`
          await expectExit([0], `cp -al ${packages} 2>/dev/null || cp -a ${packages}`)
          // 8: musl was left out, because this machine has no roots of Alpine.
          const script = `cd ${folder} && ${process.execPath} cli/release.ts`
          const text = await expectExit([0, 8], script, { ...env, OTPD_RELEASE_KEY: key })
          for (const line of text.split('\n'))
            if (/^(linux|darwin)-\S+:|^Left out/.test(line)) print(`${env['TZ']}: ${line}`)
          return join(folder, 'dist/release')
        }
        const first = await build(root, join(work, 'one'), { TZ: 'UTC', LANG: 'C' })
        const second = await build(join(work, 'one'), join(work, 'other/place/two'), {
          TZ: 'Asia/Tokyo',
          LANG: 'de_DE.UTF-8',
        })
        await expectExit([0], `diff -r ${first} ${second}`)
        print('both folders have the same bytes')

        const signers = join(work, 'signers')
        const sums = join(first, version, 'SHA256SUMS')
        await Bun.write(signers, `otpd ${readFileSync(`${key}.pub`, 'utf8')}`)
        const check = `ssh-keygen -Y verify -f ${signers} -I otpd -n otpd-release -s ${sums}.sig`
        await expectExit([0], `${check} < ${sums}`)
        await expectExit([255], `{ cat ${sums}; echo; } | ${check}`)
        print('the signature holds, and not for a changed file')
      } finally {
        rmSync(work, { recursive: true, force: true })
      }
    },
  },
]
