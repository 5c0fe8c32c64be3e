/** `npm run fuzz -- promql [--minutes 1] [--seed N]`: ends with 1 if there is a difference. Debian: `apt-get install prometheus`. */
import { optionsIn } from '../../rig/options.ts'
import { fuzzPromql } from './fuzz.ts'

const [name, ...argv] = process.argv.slice(2)
if (name !== 'promql') {
  console.error('usage: npm run fuzz -- promql [--minutes 1] [--seed N]')
  process.exit(2)
}
const options = optionsIn(argv, { minutes: 1, seed: Date.now() % 2 ** 31 })
const { passedOver, difference, ...counts } = await fuzzPromql(options)
console.log(`seed ${options.seed}: ${JSON.stringify(counts)}`)
for (const [reason, count] of passedOver) console.log(`passed over ${count} times: ${reason}`)
if (difference !== undefined) {
  console.log(`a difference: ${difference}`)
  process.exitCode = 1
}
