/** Every public name of the library is in docs/client.md, and every one that exists at run time is in an example that is run. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import * as client from '../../client/index.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const page = read('docs/client.md')
const examples = [...page.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code).join('\n')

/** What the two files of the entry export, types too. */
const names = ['client/index.ts', 'client/public.ts'].flatMap((path) =>
  [...read(path).matchAll(/^export (?:type )?\{([^}]*)\}|^export (?:const|async function|interface) (\w+)/gm)].flatMap(
    ([, list, name]) => (name ? [name] : list!.split(',').map((name) => name.trim().replace(/^type /, ''))),
  ),
)

test.each([...new Set(names)].filter(Boolean))('%s is documented', (name) => {
  expect(page).toMatch(new RegExp(`\\b${name}\\b`))
})

test.each(Object.keys(client))('%s is used in an example', (name) => {
  expect(examples).toMatch(new RegExp(`\\b${name}\\b`))
})

test('the methods of a consumer and its events are documented', () => {
  const methods = [
    'collect',
    'subscribe',
    'buffer',
    'get',
    'stop',
    'query',
    'execute',
    'commit',
    'defChannel',
    'setChannel',
  ]
  const more = [
    'delChannel',
    'nop',
    'follow',
    'run',
    'samples',
    'on',
    'close',
    'channel',
    'capabilities',
    'isConfidential',
    'nameOf',
  ]
  for (const name of [...methods, ...more]) expect(page).toMatch(new RegExp(`\`(consumer\\.)?${name}\\b`))
})
