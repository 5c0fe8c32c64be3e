/**
 * Every place of a command where an id of somebody else could be put: generated from the table of commands, the controls
 * and the metrics that whoever asks is shown. The rest of each command is the asker's own.
 */
import { commands } from '../../../../../protocol/monitor/commands.ts'
import { type FieldKind, fieldKinds } from '../../../../../protocol/monitor/fields.ts'
import { args, command, frame, str, type, u32, u64 } from '../../../../support/bytes.ts'
import { decoded } from '../../../../support/records.ts'
import type { Seat } from '../../../../support/seat.ts'
import type { IdKind } from './victim.ts'

export interface Slot {
  /** As "SUBSCRIBE channel". */
  readonly name: string
  readonly kind: IdKind
  make(seq: number, id: number): Uint8Array
}

/** `own`: a living metric id of the asker, for the places beside the one that is tried. */
export async function slotsOf(seat: Seat, own: number): Promise<Slot[]> {
  const shown = decoded(await seat.query('producer.metrics', args(['match', type.string, str('producer.*')])))
  const controls = decoded(await seat.query('producer.controls'))
  return [...ofCommands(own), ...controls.flatMap(ofControl), ...shown.flatMap(ofMetric)]
}

function ofCommands(own: number): Slot[] {
  return Object.entries(commands).flatMap(([name, { code, fields }]) => {
    const entries = Object.entries(fields) as [string, FieldKind<unknown>][]
    return entries.flatMap(([key, field]): Slot[] => {
      const kind = kindOf(key, field)
      if (kind === undefined) return []
      const make = (seq: number, id: number): Uint8Array => {
        const values = entries.map(([other, otherField]) => {
          const value = other === key ? id : other === 'metric' ? own : 0
          return otherField === fieldKinds.transactionId ? u64(value) : u32(value)
        })
        return frame(u32(code), u32(seq), ...values)
      }
      return [{ name: `${name} ${key}`, kind, make }]
    })
  })
}

function kindOf(key: string, field: FieldKind<unknown>): IdKind | undefined {
  if (field === fieldKinds.transactionId) return 'transaction'
  if (key === 'channel') return 'channel'
  return key === 'metric' && field === fieldKinds.uint32 ? 'metric' : undefined
}

interface Listed {
  readonly name: string
  readonly parameters: readonly { readonly name: string; readonly optional: boolean }[]
}

const isId = (name: string): name is IdKind => name === 'channel' || name === 'metric'

function ofControl({ name: control, parameters }: Listed): Slot[] {
  return parameters.flatMap(({ name }): Slot[] => {
    if (!isId(name)) return []
    const make = (seq: number, id: number): Uint8Array => {
      const needed = parameters.filter((one) => one.name === name || !one.optional)
      const given = needed.map((one) => [one.name, type.uint32, u32(one.name === name ? id : 0)] as const)
      return command.execute(seq, control, args(...given))
    }
    return [{ name: `${control} ${name}`, kind: name, make }]
  })
}

function ofMetric({ name: metric, parameters }: Listed): Slot[] {
  return parameters.flatMap(({ name }): Slot[] => {
    if (!isId(name)) return []
    const make = (seq: number, id: number): Uint8Array =>
      command.query(seq, metric, args([name, type.string, str(String(id))]))
    return [{ name: `${metric} ${name}`, kind: name, make }]
  })
}
