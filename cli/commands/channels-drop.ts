/**
 * `cinnabar channels delete` and `cinnabar channels purge`. A name alone is that of one's own channel, whoever asks: only an id, or
 * a name with its tenant, reaches channels of others.
 */
import type { Command } from 'commander'
import { type Consumer, StatusError } from '../../client/index.ts'
import { channelOrName } from '../arguments.ts'
import { findChannels, missingChannel, queryChannels } from '../channel-query.ts'
import { confirm, counted, YES_OPTION, type YesOption } from '../confirm.ts'
import { checkOutcome, runControl } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import { formatBytes, printable } from '../format.ts'
import { type ChannelLedger, isOrphan, toLedger } from '../ledger.ts'
import type { LoginOptions } from '../login.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { type Terminal, withProgress } from '../terminal.ts'

export const NO_ORPHANS = 'there are no orphans'
const NAMES = 'channels, by their ids or names; an admin may name those of any user by id or as tenant/name'

type DropOptions = LoginOptions & YesOption

function names(text: string, before: (number | string)[] = []): (number | string)[] {
  return [...before, channelOrName(text)]
}

export function addChannelsDelete(channels: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(channels.command('delete'))
    .description('delete channels and everything that waits in them')
    .argument('[channel...]', NAMES, names)
    .option(
      '--orphans',
      'delete all channels that `cinnabar channels --orphans` lists; for an admin, those of all users',
    )
    .option(...YES_OPTION)
    .action((named: readonly (number | string)[] = [], options: DropOptions & { readonly orphans?: boolean }) => {
      if (named.length > 0 === (options.orphans === true)) {
        throw new Failure(ExitCode.USAGE, 'name the channels to delete, or give --orphans')
      }
      return withConsumer(cli, options, async (consumer) => {
        if (options.orphans) return deleteOrphans(consumer, terminal, options)
        const found = await resolveAll(consumer, named, options)
        await confirm(terminal, options, found.map(whatGoes), 'Delete this?')
        for (const { id, label } of found) {
          await withProgress(terminal, 'deleting the channel', deleteChannel(consumer, id))
          terminal.note(`channel ${label} deleted`)
        }
      })
    })
}

export function addChannelsPurge(channels: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(channels.command('purge'))
    .description('drop everything that waits in channels, and keep them; a gap reports the loss')
    .argument('<channel...>', NAMES, names)
    .option(...YES_OPTION)
    .action((named: readonly (number | string)[], options: DropOptions) =>
      withConsumer(cli, options, async (consumer) => {
        const found = await resolveAll(consumer, named, options)
        await confirm(terminal, options, found.map(whatGoes), 'Drop these values?')
        for (const { id, label } of found) {
          const purging = runControl(consumer, 'channel.purge', { channel: id })
          const result = await withProgress(terminal, 'purging the channel', purging)
          checkOutcome('channel.purge', result)
          terminal.note(`channel ${label}: ${result.detail}`)
        }
      }),
    )
}

interface KnownChannel {
  readonly id: number
  /** For messages. */
  readonly label: string
  /** Undefined where nobody asks. */
  readonly ledger: ChannelLedger | undefined
}

/** How many values, and whose. */
function whatGoes({ label, ledger }: KnownChannel): string {
  return `channel ${label}${ledger === undefined ? '' : whatWaits(ledger)}`
}

/** Names the owner, and counts what is not committed. */
export function whatWaits({ identity, inFlight, queued, queuedBytes }: ChannelLedger): string {
  const waiting = inFlight + queued
  return ` of ${identity}: ${counted(waiting, 'value')} not committed${queuedBytes > 0 ? ` (${formatBytes(queuedBytes)})` : ''}`
}

/** All are found before anything is changed. Rejects with Failure if one does not exist, or if a name is not unique. */
async function resolveAll(
  consumer: Consumer,
  named: readonly (number | string)[],
  { yes = false }: YesOption,
): Promise<KnownChannel[]> {
  const found: KnownChannel[] = []
  for (const name of named) {
    if (typeof name === 'string') {
      const ledger = await findNamed(consumer, name)
      found.push({ id: ledger.channel, label: `${ledger.channel} (${printable(name)})`, ledger })
    } else {
      // An id says which channel is meant, so that with --yes the server is asked nothing: it may have a full disk.
      const { records } = yes ? { records: [] } : await queryChannels(consumer, name)
      found.push({ id: name, label: String(name), ledger: records.map(toLedger)[0] })
    }
  }
  return found
}

/** One's own channel of this name; or, if it is written as tenant/name or tenant/user/name, the only one there. */
async function findNamed(consumer: Consumer, name: string): Promise<ChannelLedger> {
  const [current] = (await findChannels(consumer, consumer.channel)).records.map(toLedger)
  const sameName = await namedExactly(consumer, name)
  const own = sameName.find(({ identity }) => identity === current?.identity)
  if (own !== undefined) return own
  const meant: ChannelLedger[] = []
  for (let slash = name.indexOf('/'); slash > 0; slash = name.indexOf('/', slash + 1)) {
    const [owner, rest] = [name.slice(0, slash), name.slice(slash + 1)]
    for (const ledger of rest === '' ? [] : await namedExactly(consumer, rest)) {
      const full = withTenant(ledger.identity)
      if (full === owner || full.startsWith(`${owner}/`)) meant.push(ledger)
    }
  }
  const [one, another] = meant
  if (one !== undefined && another === undefined) return one
  const others = meant.length > 0 ? meant : sameName
  if (others.length === 0) throw missingChannel(name)
  const owners = others.map(({ channel, identity }) => `${channel} of ${identity}`).join(', ')
  const [tenant] = withTenant(others[0]?.identity ?? '').split('/')
  throw new Failure(
    ExitCode.FAILED,
    meant.length > 0
      ? `several channels have the name ${name} (${owners}): give the id of one of them`
      : `you have no channel ${name}, but others have (${owners}): give an id, or write ${tenant}/${name}`,
  )
}

/** The users of the tenant `default` are shown without it. */
function withTenant(identity: string): string {
  return identity.includes('/') ? identity : `default/${identity}`
}

async function namedExactly(consumer: Consumer, name: string): Promise<ChannelLedger[]> {
  return (await findChannels(consumer, name)).records.map(toLedger)
}

/** Deletes one's own channel, which works on a full disk too, or else runs the control that lets an admin delete any channel. */
async function deleteChannel(consumer: Consumer, channel: number): Promise<void> {
  try {
    await consumer.delChannel(channel)
  } catch (error) {
    if (!(error instanceof StatusError) || error.status !== 'NO_SUCH_CHANNEL') throw error
    const result = await runControl(consumer, 'channel.delete', { channel }).catch((refused: unknown) => {
      throw refused instanceof StatusError ? error : refused
    })
    checkOutcome('channel.delete', result)
  }
}

/** Each is deleted only if it is still an orphan then. */
async function deleteOrphans(consumer: Consumer, terminal: Terminal, options: YesOption): Promise<void> {
  const { records } = await queryChannels(consumer, undefined)
  const orphans = records.map(toLedger).filter(isOrphan)
  if (orphans.length === 0) return terminal.note(NO_ORPHANS)
  const what = orphans.map((ledger) => `channel ${ledger.channel}${whatWaits(ledger)}`)
  await confirm(terminal, options, what, 'Delete this?')
  for (const { channel, identity } of orphans) {
    try {
      checkOutcome('channel.delete', await runControl(consumer, 'channel.delete', { channel, orphan: true }))
      terminal.note(`channel ${channel} of ${identity} deleted`)
    } catch (error) {
      if (!(error instanceof StatusError) || (error.status !== 'BUSY' && error.status !== 'NO_SUCH_CHANNEL'))
        throw error
      terminal.note(`channel ${channel} of ${identity} is left alone: ${error.message}`)
    }
  }
}
