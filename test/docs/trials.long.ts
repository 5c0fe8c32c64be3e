/** The tests of the documents can fail: blocks that show what is so pass, and each kind of mistake is found. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { missingFor } from './console.ts'
import { check, runnable } from './instead.ts'
import { type Block, type Page, readPage } from './page.ts'
import { Trials } from './trials.ts'

const FENCE = '```'
const block = (language: string, text: string) => `${FENCE}${language}\n${text}\n${FENCE}`
const query = "const { value } = await consumer.query('host.load.one')\nconsole.log(typeof value.value) // number"
const connecting =
  "import { connect } from 'cinnabar/client'\n" +
  "const consumer = await connect('tcp://127.0.0.1:7650', { identity: 'alice', password: 'hers' })"

const RIGHT: Readonly<Record<string, string>> = {
  'commands that print what is shown': block('console', '$ echo 1 > file\n$ cat file\n2'),
  'a block without a language that begins with a command': block('', '$ cat file\n2'),
  'a directory and a variable that last': `${block('console', '$ mkdir d && cd d\n$ export A=b')}\n${block('console', '$ basename $PWD $A; cd ..\nd')}`,
  'a command of two lines': block('console', '$ cat <<EOF\n> one\n> EOF\none'),
  'a command that fails as is shown': block('console', '$ npx cinnabar get nothing\ncinnabar: …\n…'),
  'a command that goes on': block(
    'console',
    '$ npx cinnabar watch host.load.one interval_ms=10\n1:2:3 host.load.one 4',
  ),
  'a command that is interrupted': block('console', '$ npx cinnabar watch host.load.one\n1:2:3 host.load.one 4\n^C'),
  'a command that prints nothing for long': block('console', '$ sleep 2.1; echo 1 > late\n…\n$ cat late\n1'),
  'a command that goes on beside the others': block(
    'console',
    '$ while sleep 0.01; do echo 1 >> beside; done &\n$ until grep -m 1 1 beside; do sleep 0.01; done 2> /dev/null\n1',
  ),
  'what another terminal does meanwhile': `<!-- console meanwhile\n$ echo 1 > reported\n-->\n${block('console', '$ until grep 1 reported; do :; done 2> /dev/null\n1')}`,
  'a server that is killed': `<!-- console\n$ restart-server SIGKILL\n-->\n${block('console', '$ npx cinnabar get host.load.one\nhost.load.one 0.42 2-3-4 5:6:7')}`,
  'an example': block('ts', `${connecting}\n${query}\nconsumer.close()`),
  'an example with a hidden front': `<!-- ts\n${connecting}\n-->\n${block('ts', `${query}\nconsumer.close()`)}\n<!-- ts\n-->`,
  'an example that goes on': block('ts', 'setInterval(() => console.log(1), 10)\nexport {}\nconsole.log("a") // a'),
  'an example with output after it': `${block('ts', 'console.log("a")')}\n\n${block('text', 'a')}`,
  'a file that is imported': `${block('ts', '// file: a.ts\nexport const a = 1')}\n${block('ts', "import { a } from './a.ts'\nconsole.log(a) // 1")}`,
  'a file that is used': `${block('conf', '# file: x.conf\nport 7650')}\n${block('console', '$ wc -l x.conf\n2 x.conf')}`,
  'a program in Python': `${block('python', '# file: a.py\nimport cinnabar\nprint(cinnabar.VOID.value)')}\n${block('console', '$ python3 a.py\nNone')}`,
  'a configuration': block('toml', '[smon]\ntcp = "127.0.0.1:2606"'),
  'a command of the protocol': block('json', '{"cmd": "NOP", "seq": 1}'),
  'a query of the database': block('sql', 'select id from block;'),
  'a drawing': block('text', 'a -> b'),
}

const WRONG: Readonly<Record<string, readonly [text: string, says: RegExp]>> = {
  'a block of an unknown language': [block('', 'x'), /nothing is known of blocks of language ""/],
  'another output': [block('console', '$ echo a\nb'), /--- shown\nb\n--- printed, exit code 0\na$/],
  'a command that fails': [block('console', '$ false'), /exit code 1/],
  'a command that says nothing': [block('console', '$ true\na'), /exit code 0/],
  'a command that is not there': [block('console', '$ nobody-knows-this'), /not found/],
  'a program that npx does not know here': [block('console', '$ npx strange'), /npx strange is neither/],
  'output before a command': [block('console', 'a'), /begins with a command/],
  'an example that does not compile': [block('ts', '\nconst a: number = ""'), /^line \d+: Type 'string'/],
  'an example that throws': [block('ts', 'throw new Error("no")'), /exit code 1/],
  'an example that prints something else': [block('ts', 'console.log("a") // b'), /--- shown\nb/],
  'a file that nobody uses': [block('ts', '// file: b.ts\nexport {}'), /no block of p.md runs or imports b.ts/],
  'a program in Python that nobody runs': [block('python', '# file: b.py\n1'), /no block of p.md runs or imports b.py/],
  'a wrong configuration': [block('toml', '[smon]\ntpc = ""'), /unknown key `smon.tpc`/],
  'JSON that does not parse': [block('json', '{'), /JSON/],
  'a command that the protocol does not have': [block('json', '{"cmd": "NO", "seq": 1}'), /NO/],
  'a query of a table that is not there': [block('sql', 'select 1 from nowhere'), /no such table/],
  'a command in a drawing': [block('text', 'npm start'), /a command in a block that is not run/],
  'a page that no browser opens': [block('html', '<p>'), /no test in test\/web\/ names p.md#/],
}

const read = (text: string): Page => readPage('p.md', text)
const right = read(Object.values(RIGHT).join('\n'))
const wrong = read(
  Object.values(WRONG)
    .map(([text]) => text)
    .join('\n'),
)
let trials: Trials | undefined

beforeAll(async () => {
  trials = await Trials.open([right, wrong])
})
afterAll(() => trials?.close())

describe('a document with blocks that show what is so', () => {
  for (const [name, text] of Object.entries(RIGHT)) {
    it(`may have ${name}`, async () => {
      const count = read(Object.values(RIGHT).slice(0, Object.values(RIGHT).indexOf(text)).join('\n')).blocks.length
      for (const one of right.blocks.slice(count, count + read(text).blocks.length)) await trials?.run(right, one)
    })
  }
})

describe('a document fails with', () => {
  for (const [index, [name, [, says]]] of Object.entries(WRONG).entries()) {
    it(name, async () => {
      const one = wrong.blocks[index] as Block
      await expect(trials?.run(wrong, one)).rejects.toThrow(says)
    })
  }
})

describe('commands that are not run', () => {
  it.each([
    ['npm run nothing', /no script called nothing/],
    ['npm run bench -- nothing', /no bench is called nothing/],
    ['npm run bench -- query --nothing', /has no --nothing/],
    ['npm run chaos -- --nothing 1', /has no --nothing/],
    ['npx vitest run test/nothing/', /there is no test\/nothing\//],
  ])('%s is found wrong', (command, says) => {
    expect(() => check(command)).toThrow(says)
  })

  it('are left out of a line, and the rest of it is run', () => {
    expect(runnable('npm install && npm start')).toBe(': && npm start')
    expect(check('npx cinnabar get x')).toBe(false)
  })

  it('are skipped where a program has to be installed first', () => {
    const page = read(block('console', '$ true | gmetric -n x'))
    expect(missingFor(page.blocks, () => false)).toBe('ganglia-monitor')
    expect(missingFor(page.blocks, () => true)).toBeUndefined()
    expect(missingFor(read(block('console', '$ /usr/sbin/gmetad -c x')).blocks, () => false)).toBe('gmetad')
  })
})
