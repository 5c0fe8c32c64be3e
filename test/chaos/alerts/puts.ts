/**
 * What a user puts while somebody is killed: two notifiers and a rule file, again and again, with other numbers and other secrets. What
 * was said to be in force is so at whoever serves next; what was cut off is so as a whole, or not at all; and what is secret can be opened.
 */
import { createHash } from 'node:crypto'
import { until } from '../../rig/patience.ts'
import type { Totals } from '../../rig/rig.ts'
import type { Listener, User } from '../../rig/world/link.ts'
import { type Argument, administer, LinkControls, text } from '../../rig/world/link-controls.ts'
import { type, u32 } from '../../support/bytes.ts'
import type { Json } from '../../support/records.ts'
import { SECRET_PREFIX } from './judge.ts'
import { PUT_GROUP, ruleFile } from './model.ts'

const AUTHOR = 'author'
const PASSWORD = 'the password of whoever puts rules'
const FILE = 'put.yml'
const SECRET_BYTES = 24
/** A week, in which nothing is told again. */
const REPEAT_MIN = 10_080
const DRY_RUN: Argument = ['dry_run', type.boolean, u32(1)]

/** A notifier to be put. */
export interface PutTable {
  readonly name: string
  readonly url: string
  /** Further keys. */
  readonly keys: string
}

/** The number of what is in force, as far as that is known. */
interface Known {
  sure: number
  /** It may be this one as well. */
  tried: number
}

export class Puts {
  /** With which the notifiers were put, or may have been. */
  readonly secrets: string[] = []
  readonly #tables: readonly PutTable[]
  readonly #author: User = { name: AUTHOR, secret: PASSWORD, keys: undefined }
  readonly #notifiers: Known = { sure: 0, tried: 0 }
  readonly #rules: Known = { sure: 0, tried: 0 }
  #number = 0
  #link: LinkControls | undefined
  readonly #counts = { 'puts in force': 0, 'puts cut off': 0, 'of these in force': 0 }

  constructor(tables: readonly PutTable[]) {
    this.#tables = tables
  }

  /** Makes the user, who has no rights but these, and puts everything for the first time. */
  async begin(listener: Listener, admin: User): Promise<void> {
    const rights = ['rules.*', 'notify.*'].map(
      (object) =>
        ['role.allow', text('role', AUTHOR), text('command', 'EXECUTE'), text('object', object)] as [
          string,
          ...Argument[],
        ],
    )
    await administer(listener, admin, [
      ...rights,
      ['user.add', text('user', AUTHOR), text('role', AUTHOR), text('password', PASSWORD)],
    ])
    await this.next(listener)
    if (this.#notifiers.sure === 0 || this.#rules.sure === 0) throw new Error('nothing could be put')
  }

  /** Puts everything with the next number. Settles when that is done, or when the connection has ended. */
  async next(listener: Listener): Promise<void> {
    const link = await LinkControls.open(listener, this.#author).catch(() => undefined)
    if (link === undefined) return
    this.#link = link
    const number = ++this.#number
    this.secrets.push(...this.#tables.map(({ name }) => secretOf(name, number)))
    await this.#put(link, this.#notifiers, number, 'notify.put', this.#notifiersOf(number))
    await this.#put(link, this.#rules, number, 'rules.put', [text('name', FILE), text('rules', rulesOf(number))])
    link.close()
  }

  /** Whoever was asked is gone. */
  leave(): void {
    this.#link?.close()
  }

  async #put(
    link: LinkControls,
    known: Known,
    number: number,
    control: string,
    list: readonly Argument[],
  ): Promise<void> {
    known.tried = number
    // A server that ends refuses what is new.
    const result = await link.run(control, ...list).catch(() => undefined)
    if (result?.outcome === 'failed') throw new Error(`${control}: ${result.detail}`)
    if (result?.outcome !== 'ok') return
    known.sure = number
    this.#counts['puts in force']++
  }

  /** Throws unless whoever serves has everything in force that it should have. `listener`: where, at the moment. */
  async check(listener: () => Listener): Promise<void> {
    const asked = (control: string, ...list: Argument[]): Promise<Json> => this.#asked(listener, control, list)
    await this.#find('the notifiers', this.#notifiers, async (number) => {
      const changes: Json[] = await asked('notify.put', ...this.#notifiersOf(number), DRY_RUN)
      return changes.map(({ name, change, keys }) => (change === 'same' ? '' : `${name} ${keys}`)).join('')
    })
    const file: string = await asked('rules.files', text('name', FILE))
    await this.#find('the rules', this.#rules, async (number) => (file === rulesOf(number) ? '' : file.slice(0, 20)))
    const listed: Json[] = [...(await asked('notify.list')), ...(await asked('rules.files'))]
    const wanted = [...this.#tables.map(({ name }) => name), FILE].map((name) => `${name} of ${AUTHOR}: `)
    const found = listed.map(({ name, author, problem }) => `${name} of ${author}: ${problem}`)
    if (JSON.stringify(found.sort()) !== JSON.stringify(wanted.sort()))
      throw new Error(`these are in force: ${found.join(', ')}`)
  }

  /** `differs`: how what is in force differs from what has a number; '' if it does not. */
  async #find(what: string, known: Known, differs: (number: number) => Promise<string>): Promise<void> {
    const { sure, tried } = known
    const ofTried = await differs(tried)
    const ofSure = ofTried === '' || sure === tried ? ofTried : await differs(sure)
    if (ofSure !== '')
      throw new Error(`${what} in force are neither those of ${sure} (${ofSure}) nor those of ${tried} (${ofTried})`)
    if (sure < tried) this.#counts['puts cut off']++
    if (sure < tried && ofTried === '') this.#counts['of these in force']++
    known.sure = known.tried = ofTried === '' ? tried : sure
  }

  async #asked(listener: () => Listener, control: string, list: readonly Argument[]): Promise<Json> {
    let result: Json
    await until(`${control} is answered`, async () => {
      // A node that has just been started may not be able to pass a connection on yet.
      const link = await LinkControls.open(listener(), this.#author).catch(() => undefined)
      result = await link?.run(control, ...list).catch(() => undefined)
      link?.close()
      return result !== undefined
    })
    const { outcome, detail, value } = result
    if (outcome !== 'ok' && outcome !== 'dry-run') throw new Error(`${control}: ${outcome}: ${detail}`)
    return value
  }

  #notifiersOf(number: number): Argument[] {
    const tables = this.#tables.map(
      ({ name, url, keys }) =>
        // Which differs with the number, and changes nothing of what is told.
        `[[notify]]\nname = "${name}"\nurl = "${url}"\nsecret_file = "it"\nrepeat_interval = "${REPEAT_MIN + number}m"\n${keys}`,
    )
    const secrets = this.#tables.map(({ name }) => [name, { secret_file: secretOf(name, number) }] as const)
    return [text('notifiers', tables.join('')), text('secrets', JSON.stringify(Object.fromEntries(secrets)))]
  }

  get totals(): Totals {
    return this.#counts
  }
}

function rulesOf(number: number): string {
  return `# ${number}\n${ruleFile(PUT_GROUP)}`
}

function secretOf(name: string, number: number): string {
  const bytes = createHash('sha256').update(`${name} ${number}`).digest().subarray(0, SECRET_BYTES)
  return SECRET_PREFIX + bytes.toString('base64')
}
