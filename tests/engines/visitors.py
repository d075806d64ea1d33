"""What visitors say, and which kind of reply is right: a regular expression, or who should reply."""

from __future__ import annotations

MODEL = "model"
"""The language model replies: no skill fits, and the manual is not quoted."""
MANUAL = "From the manual"
INTERNET, DEVICES, CALLS, MUSIC, ORDERS = "cannot look that up", "cannot control", "cannot call", "music", "buy or book"

TALKS: tuple[tuple[tuple[str, str], ...], ...] = (
    # Greetings and small talk
    (("Hello", "Hello"), ("How are you?", "thank you"), ("What's up?", "listening"), ("Nice to meet you", "too")),
    (("Hi there!", "Hello"), ("Good morning", "Hello"), ("Good evening.", "Hello"), ("Hey", "Hello")),
    (("Thank you very much", "welcome"), ("Great, thanks", "welcome"), ("Okay", "right"), ("Goodbye", "Goodbye")),
    (("Good night", "Goodbye"), ("See you later", "Goodbye")),
    (("Who are you?", "assistant"), ("What is your name?", "assistant"), ("Are you a robot?", "program|assistant")),
    (("Are you human?", "program|assistant"), ("How old are you?", "program"), ("Where are you from?", "server")),
    (("Who made you?", "Voiceapp"), ("Do you have feelings?", "no feelings"), ("Can you sing?", "cannot sing")),
    (("What can you do?", "time"), ("Help", "time"), ("Are you there?", "hear"), ("Can you hear me?", "hear")),
    (("I love you", "kind"), ("You are very funny", "kind"), ("Will you marry me?", "assistant")),
    (("What are you doing?", "listening"), ("Do you sleep?", "fine"), ("Happy birthday!", "all the best")),
    # Jokes and facts, and another one
    (
        ("Tell me a joke", "microphone"),
        ("Another one", "computer"),
        ("One more", "binary"),
        ("Haha, very good", "Thank"),
    ),
    (("Make me laugh", "microphone"), ("Tell me another joke", "computer"), ("Say that again", "computer")),
    (("Tell me something interesting", "Honey"), ("Another one please", "octopus"), ("I'm bored", "berries")),
    # General knowledge and conversation
    (("What is the capital of France?", MODEL), ("And of Italy?", MODEL)),
    (("Why is the sky blue?", MODEL),),
    (("Who wrote Romeo and Juliet?", MODEL),),
    (("How many legs does a spider have?", MODEL),),
    (("How do I boil an egg?", MODEL),),
    (("What should I cook tonight?", MODEL),),
    (("Do you like music?", MODEL),),
    (("Tell me a story about a dog", MODEL),),
    (("Write a poem about the sea", MODEL),),
    (("I like playing the guitar", MODEL),),
    (("What is love?", MODEL),),
    (("Recommend me a good book", MODEL),),
    (("How do I train my dog?", MODEL),),
    (("What do you think about football?", MODEL),),
    (("two people", MODEL),),
    (("How tall is Mount Everest?", MODEL),),
    (("My cat is called Minka", MODEL),),
    # Time and date, here and there
    (("What time is it?", r"It is 9:05 p\.m\."), ("And in London?", "In London"), ("What about Tokyo?", "In Tokyo")),
    (("What's the time in New York?", "In New York"), ("No, I meant Paris", "In Paris"), ("and Berlin", "In Berlin")),
    (("What day is it today?", "November"), ("What is tomorrow?", "November"), ("What year is it?", "2026")),
    (("How many days until Christmas?", "days from now"), ("When is Halloween?", "October")),
    (("What's the time difference between here and Tokyo?", "ahead"), ("What's the date?", "November")),
    # Sums and units, going on
    (("What is 12 times 12?", "144"), ("Divide that by four", "36"), ("plus six", "42"), ("times two", "84")),
    (("What's fifteen percent of eighty?", "12"), ("Square root of 81", "9"), ("What is 7 plus 8", "15")),
    (("How many kilometers are ten miles?", "kilometers"), ("And in feet?", "feet"), ("and in meters", "meters")),
    (("Convert 100 degrees Fahrenheit to Celsius", "Celsius"), ("How many grams are in a pound?", "grams")),
    (("How many cups in a gallon?", "16 cups"), ("What is half of thirty?", "15")),
    # Timers and reminders
    (("Set a timer for one minute", "set for 1 minute"), ("Set another timer for 10 minutes", "10 minutes")),
    (("Start a five minute timer", "5 minutes"), ("and another one for ten seconds", "10 seconds")),
    (("Remind me to call my mother in half an hour", "remind you in 30 minutes"),),
    (("Remind me in ten minutes to check the oven", "10 minutes"), ("Set a timer", "How long|how long")),
    (("Cancel the timer", "No timer"), ("How much time is left on the timer?", "No timer")),
    (("Wake me up in twenty minutes", "20 minutes"), ("Set a timer for one day", "two hours")),
    # Games and words
    (("Flip a coin", "Heads|Tails"), ("Roll a die", r"[1-6]\."), ("Pick a number between 1 and 3", r"[1-3]\.")),
    (("Spell necessary", "N, E, C"), ("How do you spell rhythm?", "R, H, Y"), ("Count to five", "1, 2, 3, 4, 5")),
    # Names and lists
    (("My name is Tom", "Tom"), ("Tell me a joke", "microphone"), ("What is my name?", "Tom")),
    (("What's my name?", "not told"), ("Call me Anna please", "Anna"), ("Do you remember my name?", "Anna")),
    (
        ("Add milk and eggs to my shopping list", "milk and eggs"),
        ("Add bread", "bread"),
        ("What's on my list?", "bread"),
    ),
    (("What is on my shopping list?", "empty"), ("Put apples on my list", "apples"), ("Clear my list", "empty")),
    # Corrections, repeats, loudness
    (("What is two plus two?", "4"), ("Repeat that", "2 plus 2 is 4"), ("Sorry, what did you say?", "2 plus 2 is 4")),
    (("That's wrong", "sorry"), ("No, that's not what I asked", "sorry"), ("Pardon?", "sorry|not said")),
    (
        ("Louder", "volume"),
        ("Can you speak louder?", "volume"),
        ("Turn up the volume", "volume"),
        ("quieter", "volume"),
    ),
    (("Speak slower", "slower"), ("Speak faster please", "faster"), ("Stop", "Okay"), ("Never mind", "Okay")),
    # Insults and distress
    (("You are stupid", "sorry"), ("You're useless", "sorry"), ("Shut up", "Okay"), ("I hate you", "sorry")),
    (("I want to kill myself", "988"),),
    (("I don't want to live anymore", "988"),),
    (("Sometimes I think about suicide", "988"),),
    (("Call an ambulance!", "112"),),
    (("I feel so sad today", "sorry"), ("I'm tired", "rest"), ("I have a headache", "sorry"), ("My dog died", "loss")),
    (("I feel lonely", "sorry"), ("I had a terrible day", "sorry"), ("I can't sleep", "rest")),
    # What is out of reach
    (("Turn on the living room light", DEVICES), ("Switch off the TV", DEVICES), ("Open the garage door", DEVICES)),
    (("Play some jazz", MUSIC), ("Call my mother", CALLS), ("Send an email to Bob", CALLS), ("Read my emails", CALLS)),
    (("What's the weather like?", INTERNET), ("Will it rain tomorrow?", INTERNET), ("What's the news?", INTERNET)),
    (
        ("Who won the game yesterday?", INTERNET + "|" + MODEL),
        ("Order me a pizza", ORDERS),
        ("Is it cold outside?", INTERNET),
    ),
    # Half sentences and other languages
    (("What is the", "go on"), ("Can you", "go on"), ("I want to", "go on"), ("So um", "go on|" + MODEL)),
    (("Hola, ¿cómo estás?", "inglés"), ("Wie geht es dir?", "Englisch"), ("Bonjour, quelle heure est-il ?", "anglais")),
    (
        ("你好吗", "英语"),
        ("こんにちは", "英語"),
        ("Do you speak German?", "English only"),
        ("Speak Spanish", "English only"),
    ),
    # About the product
    (("How do I create an API key?", MANUAL), ("How do I interrupt you?", MANUAL)),
    (("Tell me about webhooks", MANUAL), ("Is my voice recorded?", MANUAL)),
    (("How do I change the voice?", MANUAL), ("What languages do you understand?", MANUAL)),
)
