import { formatNumber } from './text.ts'

type Problem = { source: string; message: string; remedy: string }

/** More would hide the first ones: a file that is not for otpd has a problem in each line. */
const problemsMax = 20

/** Returns the problems of a configuration to show: the first ones, and how many there are more. */
export function firstProblems(problems: readonly Problem[]): readonly Problem[] {
  const others = problems.length - problemsMax
  if (others <= 0) return problems
  const message = `${formatNumber(others)} more ${others === 1 ? 'problem is' : 'problems are'} not shown.`
  return [
    ...problems.slice(0, problemsMax),
    { source: 'configuration', message, remedy: 'Correct these first.' },
  ]
}
