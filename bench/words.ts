/** What stands between the words that carry a text's meaning, the commonest first. */
export const GLUE = split(
  /,\s*/,
  `
  of the, in the, and, to the, a, the, of a, on the, for the, and the, to be, at the, with the, from the,
  by the, that the, in a, it is, for a, to, is a, as the, with a, was the, that, as a, of, it was, in, is the,
  there is, when the, or, but the, if the, has been, which is, not, this, all the, into the, he was, they were,
  over the, we have, one of the, after the, more than the, some of the, before a, because the, you can,
  about the, their, between the, which the, would be, under the, each, can be, without a, so that the,
  through the, two, where the, should not, I have, during the, until the, our, at least one, while the,
  does not, your, will be, no, against the, such as, an old, every, how the, most of the, a new, may have,
  as well as, what the, instead of, she had, other, close to the, nothing but, any, both the, up to a`,
);

/** What a text is about, the commonest first. */
export const WORDS = split(
  /\s+/,
  `
  information government development university community education business different important
  available national service company support research member department conference international
  economic financial professional individual particular significant additional traditional
  political environment management production performance experience question condition position
  situation relationship organisation population technology language literature knowledge
  understanding opportunity possibility responsibility security property activity quality
  majority authority character president committee association institution industry
  advertisement agreement statement movement treatment equipment interest example subject
  product project program process problem contract practice difference influence evidence
  reference confidence independence existence appearance importance insurance distance
  district section collection direction protection connection election selection reaction
  instruction construction introduction explanation application communication publication
  location operation generation examination transportation immigration discovery
  following beginning building meeting training planning spending
  order account report bill ship record season invoice ticket travel garden harbour window market
  paper method signal measure engine river letter winter teach listen carry gather offer answer
  kitchen bridge border forest copper silver candle blanket lantern basket ladder hammer needle
  thread mirror pillow carpet curtain bottle barrel bucket shovel anchor sailor captain soldier
  doctor nurse lawyer banker baker butcher farmer hunter singer dancer painter writer reader print
  publish review discuss argue explain describe compare contrast consider suggest propose refuse
  accept agree promise expect hope believe doubt wonder imagine remember forget learn study train
  practise perform attempt manage organise arrange prepare collect combine divide separate connect
  attach remove replace repair restore build destroy design develop improve increase reduce limit
  extend expand shrink narrow widen deepen sharpen soften harden warm cool freeze melt boil burn
  light shade colour shape form figure number amount degree level rate price cost value profit loss
  debt credit loan rent wage salary budget tax fee fine reward award prize gift present past future
  moment minute hour week month decade century morning evening night noon midnight spring summer
  autumn rain snow wind storm cloud thunder flood drought climate weather coast island valley
  mountain hill plain desert swamp lake pond stream ocean wave tide shore beach cliff cave rock
  stone sand clay soil mud dust ash smoke flame spark steam vapour fog mist frost ice crystal metal
  iron steel brass bronze lead tin zinc gold diamond pearl coral marble granite slate brick timber
  plank beam post pillar arch vault dome tower steeple castle palace temple chapel school college
  library museum theatre gallery studio workshop factory mill mine quarry farm barn stable orchard
  vineyard meadow pasture hedge fence gate path lane street avenue square corner crossing tunnel
  station platform railway carriage wagon cart bicycle engineer pilot driver passenger luggage
  counter desk drawer shelf cupboard chest trunk parcel package envelope stamp postcard
  message notice warning alarm bell whistle drum trumpet violin piano organ choir chorus melody
  rhythm tempo verse poem novel chapter page margin column headline editor journal magazine quarrel
  debate speech lecture lesson exam grade pupil student scholar teacher master
  apprentice clerk officer inspector judge jury witness prisoner guard thief victim crime trial
  verdict sentence appeal law rule custom habit manner fashion taste smell sound touch sight vision
  glance stare smile laugh frown sigh whisper shout scream murmur echo silence rumour secret puzzle
  riddle clue hint proof theory fact fiction legend myth history memory dream nightmare fear anger
  grief joy pride shame envy greed mercy courage wisdom folly virtue vice patience temper mood
  humour wit charm grace beauty strength weakness health illness fever cough wound scar bandage
  medicine pill remedy cure surgeon clinic hospital bed cradle nursery infant child youth adult
  elder widow orphan cousin uncle aunt nephew niece neighbour stranger guest host tenant landlord
  owner partner rival enemy friend ally crew team squad army navy fleet battle siege truce treaty
  outpost frontier colony empire republic kingdom crown throne queen prince duke baron knight squire
  peasant merchant trader pedlar broker agent client customer buyer seller supplier cargo freight
  harvest grain wheat barley oats rye corn rice bean pea lentil onion carrot turnip cabbage lettuce
  spinach pumpkin melon apple pear plum cherry peach grape lemon orange fig olive walnut almond
  butter cheese cream honey sugar salt pepper mustard vinegar sauce soup stew roast pie pastry
  dough loaf crust crumb slice spoon fork knife plate bowl cup saucer kettle pot pan oven stove
  chimney hearth cellar attic stair hall parlour chamber ceiling wall floor roof tile gutter drain
  pipe valve pump wheel axle gear lever pulley clutch screw bolt nut rivet hinge lock key handle
  switch wire cable plug socket lamp bulb battery motor turbine boiler furnace piston cylinder lens
  prism telescope microscope compass chart map globe scale ruler clock watch calendar almanac
  gentle bitter hollow eager modest honest loyal stubborn clever curious careless fragile
  rapid sudden gradual constant frequent rare ordinary peculiar obvious vague precise rough smooth
  shallow steep crowded empty vacant hidden ancient modern rural urban public private formal casual
  foreign native distant nearby upper lower inner outer vertical flexible rigid liquid solid hungry
  thirsty sleepy awake alive absent equal unique double triple annual daily weekly local global
  follow reach enter leave arrive depart return wander climb crawl stumble leap chase
  escape capture release deliver receive borrow lend invest insure inherit earn spend waste save
  scatter sow sprinkle pour spill soak rinse scrub polish wrap fold tear stitch weave knit carve
  mould sketch trace copy erase translate interpret quote summarise outline predict
  permit forbid oblige persuade convince deceive betray forgive apologise thank greet invite
  celebrate mourn comfort encourage inspire annoy tease insult threaten protect defend attack
  surrender conquer govern elect appoint dismiss resign retire employ hire promote transfer
  postpone cancel resume continue finish begin interrupt delay hurry linger vanish appear emerge
  remain belong possess contain include exclude involve require deserve resemble depend vary`,
);

function split(separator: RegExp, text: string): string[] {
  return text.trim().split(separator);
}
