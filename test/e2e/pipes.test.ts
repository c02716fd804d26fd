import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binaryPath, runToEnd } from '../helpers/binary.ts'

const home = mkdtempSync(join(tmpdir(), 'otpd-pipes-'))
afterAll(() => rmSync(home, { recursive: true }))

const inBash = (text: string) =>
  runToEnd(['bash', '-c', text], {
    env: { PATH: process.env.PATH ?? '', HOME: home, OTPD: binaryPath },
    cwd: home,
  })

test('output larger than the pipe buffer reaches a slow reader completely', async () => {
  const { stdout } = await inBash(
    '"$OTPD" completion zsh > whole; "$OTPD" completion zsh | (sleep 0.3; wc -c); wc -c < whole',
  )
  const [read, totalBytes] = stdout.split('\n').map(Number)
  expect(totalBytes).toBeGreaterThan(65_536)
  expect(read).toBe(totalBytes ?? 0)
})

test('a reader that stops early is not a failure', async () => {
  const result = await inBash('"$OTPD" completion zsh | head -1; exit "${PIPESTATUS[0]}"')
  expect(result).toEqual({ exitCode: 0, stdout: '#compdef otpd\n', stderr: '' })
})

test('output that cannot be written is an error that says why', async () => {
  expect(await inBash('"$OTPD" completion zsh > /dev/full')).toEqual({
    exitCode: 1,
    stdout: '',
    stderr: 'Error: The output cannot be written (ENOSPC).\n  Check that the disk has space.\n',
  })
})

test('bash can source the completion from the program', async () => {
  const result = await inBash(
    'source <("$OTPD" completion bash); COMP_WORDS=(otpd proj); COMP_CWORD=1; _otpd; echo "${COMPREPLY[@]}"',
  )
  expect(result).toEqual({ exitCode: 0, stdout: 'project\n', stderr: '' })
})
