/**
 * A variable CINNABAR_<SECTION>_<KEY> overrides the file. An unknown variable of our prefix is an error, as an unknown key
 * is; its value is never repeated, for it may be a secret under a misspelt name.
 */
import { type ConfigProblem, didYouMean } from './errors.ts'
import type { Setting } from './schema.ts'

/** Ours, but not keys: the file itself, the command line's login, the password of the first start. */
export const OTHER_VARIABLES: readonly string[] = [
  'CINNABAR_CONFIG',
  'CINNABAR_URL',
  'CINNABAR_USER',
  'CINNABAR_PASSWORD',
  'CINNABAR_TOKEN',
  'CINNABAR_WRAP',
  'CINNABAR_CA',
  'CINNABAR_CERT',
  'CINNABAR_KEY',
  'CINNABAR_ADMIN_PASSWORD',
]

export interface Override {
  readonly setting: Setting
  /** As it would have come from the file; the text itself where it does not read as the key's type. */
  readonly value: unknown
}

export function readEnvironment(
  env: NodeJS.ProcessEnv,
  settings: readonly Setting[],
): { overrides: Override[]; problems: ConfigProblem[] } {
  const overrides: Override[] = []
  const problems: ConfigProblem[] = []
  const known = [...OTHER_VARIABLES, ...settings.map(({ variable }) => variable)]
  for (const [variable, text] of Object.entries(env)) {
    if (!variable.startsWith('CINNABAR_') || text === undefined) continue
    const setting = settings.find((candidate) => candidate.variable === variable)
    if (setting) overrides.push({ setting, value: fromText(text, setting.byDefault) })
    else if (!known.includes(variable)) {
      problems.push({ source: variable, message: `unknown environment variable${didYouMean(variable, known)}` })
    }
  }
  return { overrides, problems }
}

/** Reads `text` as the type that `like` has, if it can. */
function fromText(text: string, like: unknown): unknown {
  if (typeof like === 'bigint') return /^[+-]?\d+$/.test(text) ? BigInt(text) : text
  if (typeof like === 'boolean') return text === 'true' || (text === 'false' ? false : text)
  if (Array.isArray(like)) return text.trim() === '' ? [] : text.split(',').map((item) => item.trim())
  return text
}
