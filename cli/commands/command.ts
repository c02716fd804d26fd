import { Command } from 'commander'
import type { Context, RunCommand } from '../context.ts'
import { commandPath, examples } from '../help.ts'
import { usageError, type ExitCode } from '../terminal/errors.ts'

/** A command of the command line. Its subcommands, made with `command`, are such commands too. */
export class CliCommand extends Command {
  readonly #runCommand: RunCommand

  constructor(name: string | undefined, runCommand: RunCommand) {
    super(name)
    this.#runCommand = runCommand
  }

  override createCommand(name?: string): CliCommand {
    return new CliCommand(name, this.#runCommand)
  }

  /**
   * Sets what the command does.
   *
   * @param body called with the context of the run, the arguments of the command, its options and the command itself
   */
  run<Args extends unknown[]>(body: (context: Context, ...args: Args) => Promise<ExitCode | void>): this {
    return this.action((...args) =>
      this.#runCommand(this, (context) => {
        requireNotEmpty(this)
        return body(context, ...(args as Args))
      }),
    )
  }

  /** Adds the `Examples:` part of the help. The tests run every line of it in a shell. */
  examples(...lines: string[]): this {
    return this.addHelpText('after', examples(...lines))
  }
}

/** @throws usage error for an empty argument: mostly a variable of the shell that is not set */
function requireNotEmpty(command: CliCommand) {
  const empty = command.registeredArguments.find((_, index) => command.args[index] === '')
  if (empty !== undefined)
    throw usageError(`<${empty.name()}>: The value is empty.`, `See: ${commandPath(command)} --help`)
}
