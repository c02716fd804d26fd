import { Argument, type Command } from 'commander'
import { completionScript, shells, type Shell } from '../completion.ts'
import { examples } from '../help.ts'
import type { RunCommand } from '../context.ts'

/** Registers the completion command. */
export function addCompletionCommand(program: Command, runCommand: RunCommand) {
  program
    .command('completion')
    .description('print a completion script for a shell')
    .addArgument(new Argument('<shell>', 'bash, zsh or fish').choices(shells))
    .addHelpText('after', examples('otpd completion bash > otpd.bash', 'otpd completion fish'))
    .action((shell: Shell, _options: unknown, command: Command) =>
      runCommand(command, async ({ output }) => {
        const script = completionScript(program, shell)
        output.printResult(JSON.stringify({ data: { shell, script } }), () => script)
      }),
    )
}
