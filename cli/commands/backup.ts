/** `cinnabar backup` and `cinnabar restore`: copies of the database and the history, and a copy in their place. */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  copyFileSync,
  cpSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import type { Consumer } from '../../client/index.ts'
import { readConfiguration } from '../configuration.ts'
import { checkOutcome, runControl } from '../control.ts'
import { ExitCode, errorCode, Failure, orStorageFailure } from '../failure.ts'
import { formatValue } from '../format.ts'
import type { LoginOptions } from '../login.ts'
import { fieldNumber, fieldsOf } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import type { Terminal } from '../terminal.ts'

/** How often progress is shown. */
const PROGRESS_MS = 1000

const AFTER_BACKUP = `
The copy has everything that was durable when it ended. If the server has a history, PATH becomes a directory with the database
and the history, otherwise a file. The server makes it in the directory \`backups\` of its data directory, from where it is moved
to PATH; so there has to be room for it in both places.`

const AFTER_RESTORE = `
Stop the server first, and start it afterwards. Consumers are informed: values that were committed after the backup was made
come again, and those that arrived after it are lost, which each channel reports by a GAP. The database that was there is
kept beside it, and the history as well, if the backup has one; otherwise the history stays. Secrets and configuration are not in
a backup.`

export function addBackup(program: Command, cli: Cli): void {
  withLoginOptions(program.command('backup'))
    .description('copy the database and the history of a running server')
    .argument('<path>', 'the new directory; without a history the new file')
    .option('--without-history', 'copy the database alone, to a file')
    .addHelpText('after', AFTER_BACKUP)
    .action(async (file: string, options: LoginOptions & { readonly withoutHistory?: boolean }) => {
      if (existsSync(file)) throw new Failure(ExitCode.USAGE, `${file} exists already: choose another name`)
      await withConsumer(cli, options, async (consumer) => {
        const path = await makeCopy(consumer, cli.terminal, options.withoutHistory !== true)
        moveTo(path, file)
        cli.terminal.note(`${resolve(file)} is complete`)
        noteOthers(dirname(path), cli.terminal)
      })
    })
}

/** Returns the path of the copy on the machine of the server. */
async function makeCopy(consumer: Consumer, terminal: Terminal, history: boolean): Promise<string> {
  const name = randomBytes(8).toString('hex')
  const showing = setInterval(() => void showProgress(consumer, terminal).catch(() => {}), PROGRESS_MS)
  try {
    const result = await runControl(consumer, 'storage.backup', { file: name, ...(history && { history }) })
    checkOutcome('storage.backup', result)
    return formatValue(result.value)
  } finally {
    clearInterval(showing)
  }
}

async function showProgress(consumer: Consumer, terminal: Terminal): Promise<void> {
  if (!terminal.isWatched) return
  const { value } = await consumer.query('producer.stats')
  const [copied, total] = ['backup_copied_bytes', 'backup_total_bytes'].map((field) =>
    fieldNumber(fieldsOf(value), field),
  ) as [number, number]
  if (total > 0) terminal.note(`${Math.floor((copied / total) * 100)} % of ${Math.ceil(total / 2 ** 20)} MiB copied`)
}

/** Never replaces a file, and takes no space twice on one file system. */
function moveTo(path: string, file: string): void {
  try {
    if (statSync(path).isDirectory()) {
      moveDirectory(path, file)
      return
    }
    try {
      linkSync(path, file)
    } catch (error) {
      if (!isOtherFileSystem(error)) throw error
      copyFileSync(path, file, constants.COPYFILE_EXCL)
      sync(file)
    }
    // Its name has to be durable before the other one is gone.
    sync(dirname(resolve(file)))
    rmSync(path)
  } catch (error) {
    const { message } = error as Error
    throw new Failure(
      ExitCode.FAILED,
      `the backup is complete, but not where you wanted it: it is ${path}, on the machine of the server\n${message}`,
      { cause: error },
    )
  }
}

/** It must not exist. */
function moveDirectory(path: string, to: string): void {
  try {
    renameSync(path, to)
  } catch (error) {
    if (!isOtherFileSystem(error)) throw error
    copyDirectory(path, to)
    sync(dirname(resolve(to)))
    rmSync(path, { recursive: true })
    return
  }
  sync(dirname(resolve(to)))
}

/** To another file system. What is not complete goes. */
function copyDirectory(path: string, to: string): void {
  // Fails if it is there meanwhile, and then it is not ours.
  mkdirSync(to, { mode: 0o700 })
  try {
    cpSync(path, to, { recursive: true, force: false, errorOnExist: true })
    for (const name of readdirSync(to, { recursive: true, encoding: 'utf8' })) sync(join(to, name))
    sync(to)
  } catch (error) {
    rmSync(to, { recursive: true, force: true })
    throw error
  }
}

/** A file or a directory. */
function sync(path: string): void {
  const descriptor = openSync(path, constants.O_RDONLY)
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Copies that could not be moved take room until somebody deletes them: they are not deleted here, as they may be wanted. */
function noteOthers(directory: string, terminal: Terminal): void {
  const { length } = readdirSync(directory)
  if (length === 0) return
  const files = length === 1 ? 'another file' : `${length} other files`
  terminal.note(`${directory} has ${files}, of backups that were not moved: delete those that you do not need`)
}

function isOtherFileSystem(error: unknown): boolean {
  return ['EXDEV', 'EPERM', 'ENOTSUP'].includes(String(errorCode(error)))
}

export function addRestore(program: Command, { terminal }: Cli): void {
  program
    .command('restore')
    .description('put a backup in the place of the database and the history, while the server is stopped')
    .argument('<path>', 'a file or directory that `cinnabar backup` has made')
    .option('--config <file>', 'TOML file of the server (CINNABAR_CONFIG), which names the data directory')
    .addHelpText('after', AFTER_RESTORE)
    .action(async (file: string, { config }: { config?: string }) => {
      const { producer } = await readConfiguration(config, terminal.env)
      // The server is loaded only here, so that the other commands start fast.
      const { restoreAll } = await import('#server/server')
      const directory = resolve(producer.dataDir)
      const { hasHistory, replaced } = orStorageFailure(() => restoreAll({ backup: file, directory }))
      terminal.note(`${file} is the database${hasHistory ? ' and the history' : ''} of ${directory} now`)
      for (const path of replaced) terminal.note(`what was there is ${path}: delete it when you do not need it`)
    })
}
