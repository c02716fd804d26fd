import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runToEnd } from '../helpers/run-to-end.ts'
import { startTwilioShop } from '../helpers/twilio-shop.ts'
import type { AcceptCheck } from './run.ts'

type Run = (command: string[], env?: Record<string, string>) => Promise<string>

/** Versions of Twilio's libraries: those that the façade was written with, and the newest. */
const versions = { node: ['6.2.0'], python: ['9.13.0'], go: ['v1.31.0'], java: ['12.1.1', '13.0.1'] }

/** Runs a client of Twilio against the compiled server. @param install returns the command that starts the client */
const twilioCheck = (
  language: keyof typeof versions,
  needs: string[],
  install: (folder: string, run: Run, version: string) => Promise<string[]>,
): AcceptCheck => ({
  name: `twilio-${language}`,
  title: `Twilio's library for ${language}, ${versions[language].join(' and ')}, against the façade`,
  needs,
  async run(print) {
    for (const version of versions[language]) await runWith(version)

    async function runWith(version: string) {
      const folder = mkdtempSync(join(tmpdir(), `otpd-twilio-${language}-`))
      const shop = await startTwilioShop()
      try {
        cpSync(join(import.meta.dir, 'twilio'), folder, { recursive: true })
        const run: Run = (command, env = {}) => runToEnd(command, { cwd: folder, env })
        const command = await install(folder, run, version)
        const { accountSid, authToken, serviceSid } = shop.test
        const output = await run(command, {
          OTPD_URL: shop.server.url,
          TWILIO_ACCOUNT_SID: accountSid,
          TWILIO_AUTH_TOKEN: authToken,
          VERIFY_SERVICE_SID: serviceSid,
        })
        print(`${version}: ${output.trim()}`)
      } finally {
        await shop.stop()
        rmSync(folder, { recursive: true, force: true })
      }
    }
  },
})

export const twilioChecks: AcceptCheck[] = [
  twilioCheck('node', ['node', 'npm'], async (_, run, version) => {
    await run(['npm', 'install', '--no-audit', '--no-fund', '--prefer-offline', `twilio@${version}`])
    return ['node', 'twilio-verify.mjs']
  }),
  twilioCheck('python', ['python3'], async (folder, run, version) => {
    await run(['python3', '-m', 'venv', 'venv'])
    const python = join(folder, 'venv/bin/python')
    await run([python, '-m', 'pip', 'install', '--quiet', `twilio==${version}`])
    return [python, 'twilio_verify.py']
  }),
  twilioCheck('go', ['go'], async (_, run, version) => {
    await run(['go', 'mod', 'init', 'accept'])
    await run(['go', 'get', `github.com/twilio/twilio-go@${version}`])
    await run(['go', 'build', '-o', 'client', './go'])
    return ['./client']
  }),
  twilioCheck('java', ['java', 'javac', 'mvn'], async (folder, run, version) => {
    mkdirSync(join(folder, 'maven'))
    writeFileSync(join(folder, 'maven/pom.xml'), pom(version))
    const copy = ['dependency:copy-dependencies', `-DoutputDirectory=${join(folder, 'lib')}`]
    await run(['mvn', '-q', '-f', 'maven/pom.xml', ...copy])
    await run(['javac', '-cp', 'lib/*', '-d', '.', 'java/TwilioVerify.java'])
    return ['java', '-cp', 'lib/*:.', 'TwilioVerify']
  }),
]

const pom = (version: string) => `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>accept</groupId>
  <artifactId>accept</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>com.twilio.sdk</groupId>
      <artifactId>twilio</artifactId>
      <version>${version}</version>
    </dependency>
  </dependencies>
</project>
`
