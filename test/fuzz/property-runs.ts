import { describeError, formatElapsed, type FuzzPart } from './fuzz-part.ts'
import { properties as all } from './properties/all.ts'

export const properties: FuzzPart = {
  name: 'properties',
  title: 'what always holds, with values made up by fast-check',
  async run({ runs, seed }, print) {
    const findings: string[] = []
    for (const { name, check } of all) {
      const started = performance.now()
      const failure = await check(runs, seed).catch(describeError)
      print(`${failure === undefined ? 'ok  ' : 'FAIL'} ${runs} runs, ${formatElapsed(started)}: ${name}`)
      if (failure !== undefined) findings.push(`${name}: ${failure}`)
    }
    return findings
  },
}
