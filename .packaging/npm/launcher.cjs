#!/usr/bin/env node
'use strict'
// Starts the executable of this machine, which is in an optional package of its own.
const { spawn } = require('node:child_process')
const os = require('node:os')

/** Names of the packages that may be installed here. npm before 9.6 ignores `libc`, so both may be. */
function candidates() {
  const base = `@otpd/${process.platform}-${process.arch}`
  if (process.platform !== 'linux') return [base]
  const { glibcVersionRuntime } = process.report.getReport().header
  return glibcVersionRuntime ? [base] : [`${base}-musl`]
}

function findExecutable() {
  for (const name of candidates()) {
    try {
      return require.resolve(`${name}/otpd`)
    } catch {
      // Not installed.
    }
  }
  process.stderr.write(
    `Error: otpd has no executable for this machine: ${candidates().join(', ')} is not installed.\n` +
      '  Install without --omit=optional; or otpd is not built for this machine: see its guide on installing.\n',
  )
  process.exit(1)
}

const child = spawn(findExecutable(), process.argv.slice(2), { stdio: 'inherit' })
// A signal of the terminal reaches both; one of a supervisor only this process.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2']) {
  process.on(signal, () => {
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
  })
}
child.on('error', (error) => {
  process.stderr.write(`Error: ${error.message}\n`)
  process.exit(1)
})
child.on('exit', (code, signal) => process.exit(code ?? 128 + os.constants.signals[signal]))
